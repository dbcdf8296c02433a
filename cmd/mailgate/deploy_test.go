package main

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

const deployed = "../../deploy/"

// The example of a settings file is valid once there is a relay, also with each of its
// commented lines in force. Then no setting has its default, so the file has every one.
func TestDeploy_SettingsFile_IsValid(t *testing.T) {
	t.Parallel()
	as := []string{"check-config", "--config", deployed + "mailgate.yaml"}
	does(t, []string{"MAILGATE_SMTP_URL=smtps://relay.example"}, exitOK, "", as...)
	does(t, nil, exitMisusage, "mailgate: MAILGATE_SMTP_URL: must be set", as...)
	whole := regexp.MustCompile(`(?m)^#(\w+: )`).ReplaceAllString(readFile(t, deployed+"mailgate.yaml"), "$1")
	whole = strings.NewReplacer(":change-me", ":changed", "secret: change-me", "secret: changed", "Bearer change-me", "Bearer changed", "whsec_change-me", "whsec_"+hookSecret).Replace(whole) // an example's is refused
	whole = strings.Replace(whole, "templates: templates\n", "templates: "+t.TempDir()+"\n", 1)
	whole = strings.Replace(whole, "rules: rules.yaml\n", "rules: "+deployed+"rules.yaml\n", 1)
	pems, now := t.TempDir(), time.Now().UnixMilli()
	writeCertificate(t, servertest.NewAuthority(t).Certificate(now, now+3600_000, "127.0.0.1"), pems+"/smtp.pem", pems+"/smtp.key")
	whole = strings.ReplaceAll(whole, ": /etc/mailgate/smtp.", ": "+pems+"/smtp.")
	stdout := does(t, nil, exitOK, "", "check-config", "--config", servertest.Write(t, t.TempDir()+"/whole.yaml", whole))
	for _, missing := range regexp.MustCompile(`(?m)^(\w+) .* default$`).FindAllStringSubmatch(stdout, -1) {
		t.Errorf("deploy/mailgate.yaml has no line for %s", missing[1])
	}
}

// defaultsOf are the values of all settings that are not set, by their variables.
func defaultsOf(t *testing.T) map[string]string {
	defaults := map[string]string{}
	for _, setting := range configOf(t, nil).Settings() {
		defaults["MAILGATE_"+strings.ToUpper(setting.Name)] = setting.Value
	}
	return defaults
}

func TestDocs_TableOfSettings_HasTheirDefaults(t *testing.T) {
	t.Parallel()
	defaults := defaultsOf(t)
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
			Volumes     []string
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for name := range defaultsOf(t) {
		// The image says where to listen, and no server elsewhere is asked.
		if _, passed := file.Services["mailgate"].Environment[name]; passed == (name == "MAILGATE_LISTEN" || name == "MAILGATE_URL") {
			t.Errorf("%s is passed on: %v", name, passed)
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
		servertest.Write(t, etc+"/"+name, content)
	}
	environ := []string{"MAILGATE_URL=" + server.URL}
	for _, pair := range regexp.MustCompile(`MAILGATE_\w+=\S+`).FindAllString(typed[1], -1) {
		environ = append(environ, strings.Replace(pair, "/etc/mailgate", etc, 1))
	}
	for _, line := range []string{"check-config", "test-email you@example.com", "show alice@example.com", "reset alice@example.com"} {
		if !strings.Contains(text, "mailgate "+line) {
			t.Errorf("it does not say: mailgate %s", line)
		}
		as := environ
		if line != "check-config" { // what asks a node needs no secret but its key
			as = append(as, "MAILGATE_EVENTS_URL=https://app.acme.example/", "MAILGATE_HOOK_SUPABASE_URL=https://auth.acme.example/", "MAILGATE_REDIS_PREFIX=acme", "MAILGATE_TURNSTILE_HOSTS=acme.example")
		}
		does(t, as, exitOK, "", strings.Fields(line)...)
	}
	if len(relay.List()) != 1 {
		t.Error("the mail did not go to the server's relay")
	}
}

// Each alert uses metrics and outcomes that exist, and is in the runbook, which has no other.
func TestDeploy_Alerts_ExistInMetricsAndRunbook(t *testing.T) {
	t.Parallel()
	alerts, metrics := readFile(t, deployed+"chart/alerts.yaml"), readFile(t, "../../docs/metrics.md")+readFile(t, "../../docs/problems.md")
	var file any
	if err := yaml.Unmarshal([]byte(alerts), &file); err != nil {
		t.Fatal(err)
	}
	for _, metric := range regexp.MustCompile(`mailgate_\w+`).FindAllString(alerts, -1) {
		if !regexp.MustCompile("(?m)^\\| `" + metric + "\\b").MatchString(metrics) {
			t.Errorf("there is no %s", metric)
		}
	}
	for _, labels := range regexp.MustCompile(`outcome=~?"([\w|-]+)"`).FindAllStringSubmatch(alerts, -1) {
		for outcome := range strings.SplitSeq(labels[1], "|") {
			if !regexp.MustCompile("(?m)^\\| .*`" + outcome + "`.* \\|").MatchString(metrics) {
				t.Errorf("no send has the outcome %s", outcome)
			}
		}
	}
	names := func(pattern, text string) string {
		all := map[string]bool{}
		for _, name := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all[name[1]] = true
		}
		return sorted(slices.Collect(maps.Keys(all)))
	}
	const runbook = `runbook_url: "https://github.com/mailgate/mailgate/blob/main/docs/runbook.md#` // TestLinks follows the heading
	if rules, urls := strings.Count(alerts, "- alert: "), len(regexp.MustCompile(runbook).FindAllString(alerts, -1)); rules == 0 || rules != urls {
		t.Errorf("%d alerts have %d URLs of the runbook", rules, urls)
	}
	if has, explained := names(`alert: (\w+)`, alerts), names("`(Mailgate\\w+)`", readFile(t, "../../docs/runbook.md")); has != explained {
		t.Errorf("the alerts are %s\nin the runbook are %s", has, explained)
	}
}

// Prometheus itself reads the alerts, and says when they fire.
func TestDeploy_Alerts_FireWhenTheyShould(t *testing.T) {
	need.Long(t)
	t.Parallel()
	out, err := exec.Command(need.Program(t, "promtool"), "test", "rules", "testdata/alerts.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

// The unit of systemd has valid settings. A service that cannot start writes one line to the
// journal every few seconds, on what may be the full disk.
func TestDeploy_Unit_IsValid(t *testing.T) {
	text := readFile(t, deployed+"mailgate.service")
	settings := defaultsOf(t)
	for _, line := range regexp.MustCompile(`(?m)^#?Environment=(\w+)=`).FindAllStringSubmatch(text, -1) {
		if _, known := settings[strings.TrimSuffix(line[1], "_FILE")]; !known {
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
