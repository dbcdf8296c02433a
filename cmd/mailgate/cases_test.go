package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// An operator who asks why a mailbox is treated in another way is told the entry of the rules file or list, wherever
// they ask. No trace has the address that the entry may be.
func TestCases_WhereOperatorsAsk_NameCommentAndLine(t *testing.T) {
	t.Parallel()
	otel := startReceiver(t)
	list := servertest.Write(t, filepath.Join(t.TempDir(), "bounced.txt"), "# by the old system\nother.example\nGone@example.com\n")
	s := startSite(t, `
rules:
  - name: mailbox
    exempt:
      domains: [acme.example]
      mailboxes:
        - e2e-*@qa.example
deny:
  - name: bounced
    file: `+list+`
overrides:
  - rule: mailbox
    mailboxes: [vip@example.com]
    limit: minute=9/60s
    comment: "a customer: ticket 4711"
  - {rule: client-ip, networks: [203.0.113.0/24], limit: minute=9/60s}
  - {rule: mailbox, mailboxes: [vip@example.com], limit: day=1/24h, shadow: true}
`, settingsFor(startRelay(t).URL(), inMemory, "OTEL_EXPORTER_OTLP_ENDPOINT="+otel.URL, "OTEL_BSP_SCHEDULE_DELAY=50"))
	environ := append(operatorOf(s.URL), "MAILGATE_RULES="+s.rules, "MAILGATE_SMTP_URL=smtp://127.0.0.1:25", "MAILGATE_FROM=no-reply@acme.example",
		"MAILGATE_SECRET=sixteen-bytes-of-chance-or-more")
	const traced = "4bf92f3577b34da6a3ce929d0e0e473"
	for i, tt := range []struct {
		mailbox string
		status  int
		says    []string // the cases
	}{
		{"gone+x@example.com", 422, []string{"bounced: deny (" + list + ":3)"}},
		{"e2e-1@qa.example", 200, []string{"mailbox: exempt (rules.yaml:7)"}},
		{"x@sub.acme.example", 200, []string{"mailbox: exempt (rules.yaml:5)"}},
		{"vip@example.com", 200, []string{"mailbox: override (a customer: ticket 4711, rules.yaml:13)", "mailbox: shadow override (rules.yaml:17)"}},
		{"else@example.com", 200, nil},
	} {
		id := traced + string(rune('0'+i))
		header := http.Header{"Traceparent": {"00-" + id + "-00f067aa0ba902b7-01"}}
		if r := must.Get(s.app.ask("POST", "/send-code", bodyFor(tt.mailbox), header))(t); r.Status != tt.status {
			t.Fatalf("%s: %d %s", tt.mailbox, r.Status, r.Raw)
		}
		show := does(t, environ, exitOK, "in the log", "show", tt.mailbox)
		reset := does(t, environ, exitOK, "records cleared", "reset", tt.mailbox)
		check := does(t, environ, exitOK, "Rules in force", "check-config", tt.mailbox)
		spans := otel.trace(t, id, map[int]int{200: 4, 422: 2}[tt.status])
		for _, one := range tt.says {
			for where, line := range map[string]bool{
				"show": strings.Contains(show, "case        "+one+"\n"), "reset": strings.Contains(reset, "still in force: "+one+"\n"),
				"check-config": strings.Contains(check, "\n"+one+"\n"), "the trace": strings.Contains(strings.Join(spans, "\n"), one),
			} {
				if !line {
					t.Errorf("%s: %s does not say %s:\n%s\n%s\n%s\n%s", tt.mailbox, where, one, show, reset, check, spans)
				}
			}
		}
		_, told, _ := strings.Cut(check, "Cases for the mailbox:\n")
		told, _, _ = strings.Cut(told, "\n\n")
		if n := strings.Count(show, "case  ") + strings.Count(reset, "in force: ") + strings.Count(told, ": ") - strings.Count(told, "customer: "); n != 3*len(tt.says) {
			t.Errorf("%s: %d cases are told, want %d:\n%s\n%s\n%s", tt.mailbox, n, 3*len(tt.says), show, reset, check)
		}
	}
	for _, private := range []string{"gone", "vip", "e2e-"} {
		if bytes.Contains(otel.raw, []byte(private)) || strings.Contains(s.Log.String(), private) {
			t.Errorf("the collector or the log has %s", private)
		}
	}
	for subject, want := range map[string]string{"203.0.113.7": "client-ip: override (rules.yaml:16)\n", "198.51.100.7": ""} {
		for command, before := range map[string]string{"show": "case        ", "reset": "still in force: "} {
			if out := does(t, environ, exitOK, "subject", command, "--rule", "client-ip", subject); want == "" && strings.Contains(out, before) || !strings.Contains(out, before+want) && want != "" {
				t.Errorf("%s %s: %s", command, subject, out)
			}
		}
	}
	does(t, environ, exitMisusage, "the address has no @", "check-config", "vip")
}
