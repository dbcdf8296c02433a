package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/ledger.txt anew")

// ofRun are the members whose values differ from run to run, numbered the words that do, and counted the figures about emails.
var (
	ofRun    = []string{"time", "at", "ms", "position", "request_id", "id", "wait_ms", "said", "stack", "trace_id"}
	counted  = regexp.MustCompile(`^mailgate_(sends|codes_checked|actions|bounces|resets|shadow_refusals|suppressed_sends)_total.* [1-9]`)
	numbered = regexp.MustCompile(`127\.0\.0\.1:\d+|\[[A-Za-z0-9_-]{8}\]|\d\.\d{3}s?|"timestamp":"[^"]*"`)
)

// inOrder returns an object with its members in order, without what differs from run to run.
func inOrder(t testing.TB, text []byte) string {
	t.Helper()
	var object map[string]any
	must.OK(t, json.Unmarshal(text, &object))
	if data, ok := object["data"].(map[string]any); ok {
		data["type"] = object["type"]
		object = data
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := fmt.Sprintf("%v", object[name])
		if slices.Contains(ofRun, name) {
			value = "*"
		}
		words = append(words, name+"="+numbered.ReplaceAllString(value, "*"))
	}
	return strings.Join(words, " ") + "\n"
}

// ledgered is a server and what it says of each email: to its log, to an operator, and to the operator's service.
type ledgered struct {
	*process
	app, operator client
	smtp          string
	mu            sync.Mutex
	told          []string
}

func startLedgered(t *testing.T, relayURL string) *ledgered {
	l := &ledgered{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(t)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, inOrder(t, body))
	}))
	t.Cleanup(receiver.Close)
	s := startSite(t, `
rules:
- {name: visitor, by: client_ip, limit: hour=2/1h, then: challenge}
- {name: shadow, by: domain, limit: hour=1/1h, shadow: true, only: {domains: [shadow.example]}}
deny: [{name: disposable, domains: [disposable.example]}]
actions: [{name: reply, limit: minute=1/60s}]
`, settingsFor(relayURL, append(hooksOn, doorOpen, "MAILGATE_DATA_DIR="+t.TempDir(), "MAILGATE_SECRET=all-"+secret, "MAILGATE_HOOK_BREVO="+brevoToken,
		"MAILGATE_EVENTS_URL="+receiver.URL, "MAILGATE_EVENTS_SECRET="+eventsSecret)...))
	l.process, l.app, l.operator = s.process, s.app, newClient(t, s.URL, adminKey)
	l.smtp = l.awaitLine(t, "serving", "smtp_address")
	return l
}

// submits hands an email for a mailbox to the SMTP door.
func (l *ledgered) submits(to string) error {
	return smtp.SendMail(l.smtp, smtp.PlainAuth("", "app", apiKey, "127.0.0.1"), "no-reply@acme.example", []string{to},
		[]byte("From: Acme <no-reply@acme.example>\r\nSubject: reset\r\n\r\n123456\r\n"))
}

// callLogto asks for an email as Logto does.
func (l *ledgered) callLogto(t testing.TB, to string, status int) {
	t.Helper()
	r := must.Get(newClient(t, l.URL, "").ask("POST", "/hooks/logto", fmt.Sprintf(`{"to":%q,"type":"SignIn","payload":{"code":"305805"}}`, to), http.Header{"Authorization": {logtoHeader}}))(t)
	if r.Status != status {
		t.Errorf("Logto is answered %d %s", r.Status, r.Raw)
	}
}

// says ends the server and returns the lines, entries and events of it.
func (l *ledgered) says(t testing.TB) string {
	t.Helper()
	l.waits(t, 0)
	var listed struct{ Requests []json.RawMessage }
	must.OK(t, json.Unmarshal([]byte(l.operator.must(t, "GET", "/admin/requests?limit=500", "", 200).Raw), &listed))
	metrics := l.app.get(t, "/metrics").Raw
	l.Stop(t, syscall.SIGTERM)
	var all strings.Builder
	for text := range strings.Lines(l.Log.String()) {
		if strings.Contains(text, `"msg":"request"`) || strings.Contains(text, `"msg":"submission"`) || strings.Contains(text, `"audit":true`) || strings.Contains(text, "shadow rule") {
			if !strings.Contains(text, `"route":"metrics"`) && !strings.Contains(text, `"route":"admin-requests"`) {
				all.WriteString("line " + inOrder(t, []byte(text)))
			}
		}
	}
	for _, entry := range slices.Backward(listed.Requests) {
		all.WriteString("entry " + inOrder(t, entry))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(metrics) {
		if counted.MatchString(line) {
			all.WriteString("count " + line)
		}
	}
	slices.Sort(l.told)
	for _, event := range l.told {
		all.WriteString("event " + event)
	}
	return all.String()
}

// What became of an email is said in the same words in the log, to an operator and to the operator's service, by each door:
// testdata/ledger.txt has it all.
func TestLedger_EachOutcomeAtEachDoor_AsRecorded(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, part := range []struct {
		name   string
		script fault.Script
		does   func(l *ledgered, relay *fault.Server)
	}{
		{"a relay that takes all", fault.Script{}, func(l *ledgered, relay *fault.Server) {
			for _, status := range []int{200, 429} {
				l.app.must(t, "POST", "/send-code", `{"email":"Alice@example.com","purpose":"sign-up","client_ip":"198.51.100.1"}`, status)
			}
			mail := string(relay.Mails()[0].Text)
			l.app.must(t, "POST", "/send-code", `{"email":"second@example.com","client_ip":"198.51.100.1"}`, 200)
			l.app.must(t, "POST", "/send-code", `{"email":"other@example.com","client_ip":"198.51.100.1"}`, 403)
			l.app.must(t, "POST", "/send-code", `{"email":"nonsense"}`, 422)
			l.app.must(t, "POST", "/send-code", `{"email":"named@example.com","template":"none"}`, 422)
			l.app.mustSend(t, "a@disposable.example", 422)
			for _, to := range []string{"a@shadow.example", "b@shadow.example"} {
				l.app.mustSend(t, to, 200)
			}
			for range 2 {
				must.Get(l.app.sendOnce("1", "keyed@example.com"))(t)
			}
			must.Get(l.app.sendOnce("1", "mismatch@example.com"))(t)
			check := func(email, code string, status int) {
				l.app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":%q,"code":%q,"purpose":"sign-up"}`, email, code), status)
			}
			check("nothing@example.com", "000000", 410)
			code := sixDigits.FindString(mail[strings.Index(mail, "\r\n\r\n"):])
			wrong := map[bool]string{true: "111111", false: "000000"}[code == "000000"]
			check("alice@example.com", wrong, 422)
			check("Alice@example.com", code, 200)
			l.app.must(t, "POST", "/verify-code", `{"email":"alice@example.com","verified":true}`, 200)
			id := l.app.must(t, "POST", "/actions/reply/take", `{"subject":"7"}`, 200).Body.ID
			l.app.must(t, "POST", "/actions/reply/take", `{"subject":"7"}`, 429)
			l.app.must(t, "POST", "/actions/reply/release", fmt.Sprintf(`{"subject":"7","id":%q}`, id), 200)
			l.app.must(t, "GET", "/mailboxes/alice@example.com", "", 200)

			must.OK(t, l.submits("bob@example.com"))
			for _, to := range []string{"bob@example.com", "b@disposable.example"} {
				if l.submits(to) == nil {
					t.Errorf("%s is sent", to)
				}
			}
			c := must.Get(smtp.Dial(l.smtp))(t)
			must.OK(t, c.Auth(smtp.PlainAuth("", "app", apiKey, "127.0.0.1")))
			must.OK(t, c.Mail("no-reply@acme.example"))
			must.OK(t, c.Rcpt("abandoned@example.com"))
			must.OK(t, c.Reset())
			c.Close()
			c = must.Get(smtp.Dial(l.smtp))(t)
			if c.Auth(smtp.PlainAuth("", "app", "wrong", "127.0.0.1")) == nil {
				t.Error("a wrong password signs in")
			}
			c.Close()

			for _, status := range []int{200, 429} {
				l.callLogto(t, "carol@example.com", status)
			}
			l.callLogto(t, "c@disposable.example", 422)
			change := event(t, "email_change", "2", "dora")
			l.app.callSupabase(t, change)
			l.app.callSupabase(t, change)

			_, field, _ := strings.Cut(mail, "X-Mailin-custom: ")
			field, _, _ = strings.Cut(field, "\r\n")
			for _, email := range []string{"alice@example.com", "alice@example.com", "stranger@example.com"} {
				bounced(t, l.URL, email, field)
			}
			l.operator.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", `{"reason":"asked"}`, 200)
			l.operator.must(t, "POST", "/admin/rules/visitor/reset", `{"subject":"198.51.100.1","reason":"asked"}`, 200)
			l.operator.must(t, "POST", "/admin/actions/reply/reset", `{"subject":"7","reason":"asked"}`, 200)
			l.operator.must(t, "PUT", "/admin/suppressions/eve@example.com", `{"reason":"complaint","source":"ticket"}`, 204)
			l.app.mustSend(t, "eve@example.com", 422)
			if l.submits("eve@example.com") == nil {
				t.Error("a suppressed recipient gets an email")
			}
			l.callLogto(t, "eve@example.com", 422)
			l.operator.must(t, "DELETE", "/admin/suppressions/eve@example.com", "", 204)
		}},
		{"a relay that rejects", fault.Script{At: fault.RCPT, Kind: fault.Permanent}, func(l *ledgered, _ *fault.Server) { l.asks(t, 422) }},
		{"a relay that defers", fault.Script{At: fault.RCPT, Kind: fault.Temporary}, func(l *ledgered, _ *fault.Server) { l.asks(t, 503) }},
		{"a relay that is full", fault.Script{At: fault.Banner, Kind: fault.Leaving}, func(l *ledgered, _ *fault.Server) { l.asks(t, 503) }},
		{"a relay that hangs up", fault.Script{At: fault.Dot, Kind: fault.HangUp}, func(l *ledgered, _ *fault.Server) { l.asks(t, 504) }},
	} {
		relay := fault.Run(t, part.script)
		l := startLedgered(t, relay.URL())
		part.does(l, relay)
		all.WriteString("# " + part.name + "\n" + l.says(t))
	}
	const golden = "testdata/ledger.txt"
	if *rewrite {
		servertest.Write(t, golden, all.String())
	}
	want, got := strings.Split(string(must.Get(os.ReadFile(golden))(t)), "\n"), strings.Split(all.String(), "\n")
	for i := range max(len(want), len(got)) {
		one, other := "", ""
		if i < len(want) {
			one = want[i]
		}
		if i < len(got) {
			other = got[i]
		}
		if one != other {
			t.Errorf("line %d is\n%s, want\n%s", i+1, other, one)
		}
	}
}

// asks asks for an email through each door.
func (l *ledgered) asks(t testing.TB, status int) {
	t.Helper()
	l.app.mustSend(t, "a@example.com", status)
	if l.submits("b@example.com") == nil {
		t.Error("the SMTP door takes the email")
	}
	if status == 504 { // a system must not forget the code
		status = 200
	}
	l.callLogto(t, "c@example.com", status)
}
