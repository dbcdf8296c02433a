package main

import (
	"os"
	"regexp"
	"slices"
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
	if status, _, stderr := run(t, []string{"MAILGATE_SMTP_URL=smtps://relay.example"}, as...); status != exitOK {
		t.Errorf("as it is: %s", stderr)
	}
	if status, _, stderr := run(t, nil, as...); status != exitMisusage || !strings.HasPrefix(stderr, "mailgate: MAILGATE_SMTP_URL: must be set") {
		t.Errorf("without a relay: %s", stderr)
	}
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
	path := write(t, t.TempDir()+"/whole.yaml", whole)
	status, stdout, stderr := run(t, nil, "check-config", "--config", path)
	if status != exitOK || strings.Contains(stdout, " default\n") {
		t.Errorf("with every line in force: %s%s", stderr, stdout)
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
// does not evict, the history is in a volume, and all ports are those of this machine.
func TestDeploy_Compose_IsValidAndForATrial(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../docker-compose.yml")
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Command     []string
			Ports       []string
			Volumes     []string
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
	if status, _, stderr := run(t, environ, "check-config"); status != exitOK {
		t.Errorf("the settings: %s", stderr)
	}
	for _, name := range []string{"MAILGATE_API_KEYS", "MAILGATE_ADMIN_KEYS", "MAILGATE_SECRET"} {
		environ := []string{"MAILGATE_SMTP_URL=smtps://relay.example", name + "=" + defaults[name]}
		if status, _, stderr := run(t, environ, "check-config"); status == exitOK || !strings.HasPrefix(stderr, "mailgate: "+name) {
			t.Errorf("with a relay that delivers, the %s of the trial: %d %s", name, status, stderr)
		}
	}
	if !strings.Contains(strings.Join(file.Services["redis"].Command, " "), "--maxmemory-policy noeviction") {
		t.Error("Redis may evict")
	}
	if !slices.Contains(file.Services["mailgate"].Volumes, "mailgate:/var/lib/mailgate") || !slices.Contains(file.Services["redis"].Volumes, "redis:/data") {
		t.Error("a history is in no named volume")
	}
	for name, service := range file.Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s is open to others on %s", name, port)
			}
		}
	}
}

// The unit of systemd has valid settings. A service that cannot start writes one line to the
// journal every few seconds, on what may be the full disk.
func TestDeploy_Unit_IsValid(t *testing.T) {
	t.Parallel()
	text := readFile(t, deployed+"mailgate.service")
	known := map[string]bool{}
	for _, setting := range configOf(t, nil).Settings() {
		known[envOf(setting.Name)] = true
	}
	for _, line := range regexp.MustCompile(`(?m)^#?Environment=(\w+)=`).FindAllStringSubmatch(text, -1) {
		if !known[strings.TrimSuffix(line[1], "_FILE")] {
			t.Errorf("%s is no setting", line[1])
		}
	}
	if !strings.Contains(text, "\nType=notify\n") {
		t.Error("systemd does not wait until the service listens")
	}
	if regexp.MustCompile(`(?m)^ExecStartPre=`).MatchString(text) || !strings.Contains(text, "\nRestartSec=5\n") {
		t.Error("a failing start writes more than a line every few seconds")
	}
}

// Files for secrets are neither committed nor part of an image.
func TestDeploy_FilesForSecrets_AreLeftOut(t *testing.T) {
	t.Parallel()
	git, docker := "\n"+readFile(t, "../../.gitignore"), "\n"+readFile(t, "../../.dockerignore")
	if !strings.Contains(git, "\n/.env\n") || !strings.Contains(docker, "\n.env\n") || !strings.Contains(docker, "\ndeploy\n") {
		t.Error("an .env, or what is in deploy, goes along")
	}
	for _, secret := range regexp.MustCompile(`LoadCredential=(\w+):`).FindAllStringSubmatch(readFile(t, deployed+"mailgate.service"), -1) {
		if !strings.Contains(git, "\n/deploy/"+secret[1]+"\n") {
			t.Errorf("deploy/%s can be committed", secret[1])
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
		if status, _, stderr := run(t, environ, strings.Fields(line)...); status != exitOK {
			t.Errorf("mailgate %s: %s", line, stderr)
		}
	}
	if len(relay.List()) != 1 {
		t.Error("the mail did not go to the server's relay")
	}
}

// Each alert uses metrics and outcomes that exist, says where the runbook explains it, and is in the
// runbook, which has no other.
func TestDeploy_Alerts_ExistInMetricsAndRunbook(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
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
			if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" || rule.Annotations["summary"] == "" {
				t.Errorf("%s: %v %v", rule.Alert, rule.Labels, rule.Annotations)
			}
			if !strings.HasPrefix(rule.Annotations["runbook_url"], "https://github.com/mailgate/mailgate/blob/main/docs/runbook.md#") { // TestLinks follows the heading
				t.Errorf("%s: no runbook_url", rule.Alert)
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
