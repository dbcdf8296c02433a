package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const deployed = "../../deploy/"

// The example of a settings file is valid once there is a relay, also with each of its
// commented lines in force, and has every setting.
func TestDeploy_SettingsFile_IsValid(t *testing.T) {
	t.Parallel()
	text := readFile(t, deployed+"mailgate.yaml")
	as := []string{"check-config", "--config", deployed + "mailgate.yaml"}
	does(t, []string{"MAILGATE_SMTP_URL=smtps://relay.example"}, exitOK, "", as...)
	does(t, nil, exitMisusage, "mailgate: MAILGATE_SMTP_URL: must be set", as...)
	shown := map[string]bool{"from": true, "ops_listen": true}
	for _, line := range regexp.MustCompile(`(?m)^#(\w+): .*$`).FindAllStringSubmatch(text, -1) {
		shown[line[1]] = true
	}
	for _, setting := range configOf(t, nil).Settings() {
		if !shown[setting.Name] {
			t.Errorf("%s is not in the file", setting.Name)
		}
	}
	whole := regexp.MustCompile(`(?m)^#(\w+: )`).ReplaceAllString(text, "$1")
	whole = strings.NewReplacer(":change-me", ":changed", "secret: change-me", "secret: changed").Replace(whole) // an example's is refused
	whole = strings.Replace(whole, "templates: templates\n", "templates: "+t.TempDir()+"\n", 1)
	whole = strings.Replace(whole, "rules: rules.yaml\n", "rules: "+deployed+"rules.yaml\n", 1)
	if stdout := does(t, nil, exitOK, "", "check-config", "--config", write(t, t.TempDir()+"/whole.yaml", whole)); strings.Contains(stdout, " default\n") {
		t.Errorf("with every line in force: %s", stdout)
	}
}

func TestDocs_TableOfSettings_HasTheirDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]string{}
	for _, setting := range configOf(t, nil).Settings() {
		defaults[envOf(setting.Name)] = setting.Value
	}
	rows := regexp.MustCompile("(?m)^\\| `(MAILGATE_\\w+)` \\| (?:`(.*?)`|required)? ?\\|").FindAllStringSubmatch(readFile(t, "../../docs/running.md")+readFile(t, "../../docs/redis.md"), -1)
	for _, row := range rows {
		if value, known := defaults[row[1]]; !known || value != row[2] {
			t.Errorf("%s is %q in the table and %q in the program, known: %v", row[1], row[2], value, known)
		}
	}
	if len(rows) < 10 {
		t.Errorf("%d rows", len(rows))
	}
}

// The compose file passes on every setting, and its keys work with its mail catcher only. Redis
// does not evict, and all ports are those of this machine.
func TestDeploy_Compose_IsValidAndForATrial(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../docker-compose.yml")
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Command     []string
			Ports       []string
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for _, setting := range configOf(t, nil).Settings() {
		// The image says where to listen, and no server elsewhere is asked.
		if _, passed := file.Services["mailgate"].Environment[envOf(setting.Name)]; passed == (setting.Name == "listen" || setting.Name == "url") {
			t.Errorf("%s is passed on: %v", envOf(setting.Name), passed)
		}
	}
	environ, defaults := []string{"MAILGATE_LISTEN=:8080"}, map[string]string{}
	for name, value := range file.Services["mailgate"].Environment {
		defaults[name] = regexp.MustCompile(`\$\{\w+:-(.*)\}$`).ReplaceAllString(value, "$1")
		environ = append(environ, name+"="+defaults[name])
	}
	does(t, environ, exitOK, "", "check-config")
	for _, name := range []string{"MAILGATE_API_KEYS", "MAILGATE_ADMIN_KEYS", "MAILGATE_SECRET"} {
		does(t, []string{"MAILGATE_SMTP_URL=smtps://relay.example", name + "=" + defaults[name]}, exitMisusage, "mailgate: "+name, "check-config")
	}
	if !strings.Contains(strings.Join(file.Services["redis"].Command, " "), "--maxmemory-policy noeviction") {
		t.Error("Redis may evict")
	}
	for name, service := range file.Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s is open to others on %s", name, port)
			}
		}
	}
}

// The commands of the runbook work with the files of the unit.
func TestRunbook_Commands_Work(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../docs/runbook.md")
	typed := regexp.MustCompile(`(?m)^    export ((?:.*\\\n)*.*)$`).FindStringSubmatch(text)
	if typed == nil {
		t.Fatal("it does not say where the settings are")
	}
	relay, etc := startRelay(t), t.TempDir()
	server := startServer(t, settingsFor(relay.URL(), inMemory))
	example := readFile(t, deployed+"mailgate.yaml")
	for name, content := range map[string]string{
		"mailgate.yaml": example, "smtp_url": relay.URL(), "api_keys": "app:" + apiKey, "admin_keys": "ops:" + adminKey,
	} {
		write(t, etc+"/"+name, content)
	}
	environ := []string{"MAILGATE_URL=" + server.URL}
	for _, pair := range regexp.MustCompile(`MAILGATE_\w+=\S+`).FindAllString(typed[1], -1) {
		environ = append(environ, strings.Replace(pair, "/etc/mailgate", etc, 1))
	}
	for _, line := range []string{"check-config", "test-mail you@example.com", "show alice@example.com", "reset alice@example.com"} {
		if !strings.Contains(text, "mailgate "+line) {
			t.Errorf("it does not say: mailgate %s", line)
		}
		does(t, environ, exitOK, "", strings.Fields(line)...)
	}
	if len(relay.List()) != 1 {
		t.Error("the mail did not go to the server's relay")
	}
}

// Each alert uses metrics and outcomes that exist, and is in the runbook, which has no other.
func TestDeploy_Alerts_ExistInMetricsAndRunbook(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
			}
		}
	}
	text := readFile(t, deployed+"alerts.yaml")
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	metrics, runbook := readFile(t, "../../docs/metrics.md"), readFile(t, "../../docs/runbook.md")
	explained := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Mailgate\\w+)`").FindAllStringSubmatch(runbook, -1) {
		explained[name[1]] = true
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			for _, metric := range regexp.MustCompile(`mailgate_\w+`).FindAllString(rule.Expr, -1) {
				if !regexp.MustCompile("(?m)^\\| `" + metric + "\\b").MatchString(metrics) {
					t.Errorf("%s: there is no %s", rule.Alert, metric)
				}
			}
			for _, labels := range regexp.MustCompile(`outcome=~?"([\w|-]+)"`).FindAllStringSubmatch(rule.Expr, -1) {
				for outcome := range strings.SplitSeq(labels[1], "|") {
					if !regexp.MustCompile("(?m)^\\| .*`" + outcome + "`.* \\|").MatchString(metrics) {
						t.Errorf("%s: no send has the outcome %s", rule.Alert, outcome)
					}
				}
			}
			if !explained[rule.Alert] {
				t.Errorf("%s is not in the runbook", rule.Alert)
			}
			delete(explained, rule.Alert)
		}
	}
	if len(explained) > 0 {
		t.Errorf("in the runbook, and not among the rules: %v", explained)
	}
}

func envOf(setting string) string { return "MAILGATE_" + strings.ToUpper(setting) }

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
