package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/hooks"
)

// secretSettings are those that can be in a file of their own, as a settings file has them.
func secretSettings() (all []string) {
	var line config.Config
	for _, flag := range kong.Must(&line, config.Options(nil)...).Model.Flags {
		if name, ok := strings.CutSuffix(flag.Name, "-file"); ok {
			all = append(all, strings.ReplaceAll(name, "-", "_"))
		}
	}
	return all
}

// The chart takes each secret setting from its Secret, and refuses it among its settings, which are no secret.
func TestDeploy_Chart_TakesEachSecretFromItsSecret(t *testing.T) {
	t.Parallel()
	want := sorted(secretSettings())
	list := regexp.MustCompile(`range \$key := list (.*?) }}`).FindStringSubmatch(readFile(t, deployed+"chart/templates/nodes.yaml"))
	if list == nil {
		t.Fatal("templates/nodes.yaml has no list of secrets")
	}
	if has := sorted(strings.Fields(strings.ReplaceAll(list[1], `"`, ""))); has != want {
		t.Errorf("templates/nodes.yaml takes %s\nsecret settings are %s", has, want)
	}
	var schema struct {
		Properties struct {
			Settings struct {
				PropertyNames struct {
					Not struct{ Enum []string } `yaml:"not"`
				} `yaml:"propertyNames"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, deployed+"chart/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	ownValues := []string{"listen", "ops_listen", "data_dir", "drain_delay", "rules"} // which the chart sets itself
	refused := slices.DeleteFunc(schema.Properties.Settings.PropertyNames.Not.Enum, func(name string) bool { return slices.Contains(ownValues, name) })
	if has := sorted(refused); has != want {
		t.Errorf("values.schema.json refuses %s\nsecret settings are %s", has, want)
	}
}

// Each hook has its operation in openapi.yaml, its setup in docs, and the built-in emails of its kinds.
func TestHooks_Each_IsWhole(t *testing.T) {
	t.Parallel()
	environ := append(settingsFor("smtp://127.0.0.1:25?tls=none", inMemory), hooksOn...)
	for _, setting := range []string{
		"SES=arn:aws:sns:eu-west-1:123456789012:bounces", "SENDGRID=MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==", "MAILGUN=0123456789abcdef", "POSTMARK=user:0123456789abcdef",
		"RESEND=whsec_" + hookSecret, "BREVO=0123456789abcdef",
	} {
		environ = append(environ, "MAILGATE_HOOK_"+setting)
	}
	c := configOf(t, environ)
	if on := len(c.Hooks()); on != 1+len(slices.DeleteFunc(secretSettings(), func(name string) bool { return !strings.HasPrefix(name, "hook_") })) {
		t.Fatalf("%d hooks are on: set the secret of each here, and make it in config/hooks.go", on)
	}
	senders := hooks.Names(config.HooksOf[hooks.Sender](c))
	openAPI, kinds := readFile(t, "../../openapi.yaml"), readFile(t, "../../mailer/message/kinds.go")
	providers := regexp.MustCompile(`(?s)/hooks/\{provider\}:.*?enum: \[(.*?)\]`).FindStringSubmatch(openAPI)
	for _, name := range hooks.Names(c.Hooks()) {
		sends := slices.Contains(senders, name)
		if sends && !strings.Contains(openAPI, "\n  /hooks/"+name+":\n") || !sends && (providers == nil || !slices.Contains(strings.Split(providers[1], ", "), name)) {
			t.Errorf("openapi.yaml has no operation of /hooks/%s", name)
		}
		page := "suppression.md"
		if sends {
			page = "hooks.md"
		}
		if text := readFile(t, "../../docs/"+page); !strings.Contains(text, "`https://YOUR-MAILGATE/hooks/"+name+"`") || !strings.Contains(text, "MAILGATE_HOOK_"+strings.ToUpper(name)+"=") {
			t.Errorf("docs/%s does not say how to set up %s", page, name)
		}
		if !sends {
			continue
		}
		asked := regexp.MustCompile(`"`+name+`-[a-z-]+"`).FindAllString(readFile(t, "../../hooks/"+name+".go"), -1)
		for _, kind := range asked {
			if !strings.Contains(kinds, "{"+kind+", ") {
				t.Errorf("mailer/message/kinds.go has no email %s, which hooks/%s.go asks for", kind, name)
			}
		}
		if len(asked) == 0 {
			t.Errorf("hooks/%s.go names no email", name)
		}
	}
}
