package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

const deployed = "../../deploy/"

// The settings file to start from can be used as it is, and so can each of its lines
// that are commented out.
func TestExampleSettings(t *testing.T) {
	text, err := os.ReadFile(deployed + "mailgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run(t, nil, "check-config", "--config", deployed+"mailgate.yaml"); status != exitOK {
		t.Errorf("as it is: %s", stderr)
	}
	shown := map[string]bool{"smtp_url": true, "from": true}
	for _, line := range regexp.MustCompile(`(?m)^#(\w+): .*$`).FindAllStringSubmatch(string(text), -1) {
		shown[line[1]] = true
	}
	for _, setting := range settings.Catalogue() {
		if !shown[setting.Name] {
			t.Errorf("%s is not in the file", setting.Name)
		}
	}
	whole := regexp.MustCompile(`(?m)^#(\w+: )`).ReplaceAllString(string(text), "$1")
	whole = strings.NewReplacer(":change-me", ":changed", "secret: change-me", "secret: changed").Replace(whole) // an example's is refused
	whole = strings.Replace(whole, "templates: templates\n", "templates: "+t.TempDir()+"\n", 1)
	whole = strings.Replace(whole, "rules: rules.yaml\n", "rules: "+deployed+"rules.yaml\n", 1)
	path := t.TempDir() + "/whole.yaml"
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := run(t, nil, "check-config", "--config", path)
	if status != exitOK || strings.Contains(stdout, " default\n") {
		t.Errorf("with every line in force: %s%s", stderr, stdout)
	}
}

// What the compose file gives mailgate are settings that it takes, all of them, and Redis is told
// not to evict.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Command     []string
			Ports       []string
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, setting := range settings.Catalogue() {
		// The image says where to listen, and nobody in it asks a server elsewhere.
		if _, passed := file.Services["mailgate"].Environment[setting.Env()]; passed == (setting.Name == "listen" || setting.Name == "url") {
			t.Errorf("%s is passed on: %v", setting.Env(), passed)
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
		t.Error("redis may evict")
	}
	for name, service := range file.Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s is open to others on %s", name, port)
			}
		}
	}
}
