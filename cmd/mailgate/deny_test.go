package main

import (
	"fmt"
	"net/smtp"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// A denial refuses at every door in that door's terms, charges nothing, and is in the log, the metrics and what an
// operator sees.
func TestDeny_EachDoor_Refuses(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	s := startSite(t, `
deny:
  - {name: disposable, domains: [mailinator.example], mailboxes: [Mallory+x@example.com], networks: [203.0.113.0/24]}
  - {name: trial, domains: [trial.example], shadow: true}
  - {name: bounced, mailboxes: [gone@example.com]}
overrides:
  - {rule: mailbox, domains: [qa.example], limit: minute=2/60s, comment: tests of sign-up}
`, settingsFor(relay.URL(), append(hooksOn, inMemory, doorOpen)...))
	for body, rule := range map[string]string{
		`{"email":"Victim@Sub.Mailinator.EXAMPLE"}`:                     "disposable",
		`{"email":"mallory@example.com"}`:                               "disposable",
		`{"email":"a@example.com","client_ip":"::ffff:203.0.113.7"}`:    "disposable",
		`{"email":"gone+again@example.com","client_ip":"198.51.100.1"}`: "bounced",
	} {
		if r := s.app.must(t, "POST", "/send-code", body, 422); !strings.Contains(r.Raw, `"type":"/docs#recipient-denied"`) || !strings.Contains(r.Raw, `"rule":"`+rule+`"`) {
			t.Errorf("%s is answered %s", body, r.Raw)
		}
	}
	s.app.mustSend(t, "a@mailinator.example.com", 200)
	s.app.mustSend(t, "a@trial.example", 200)
	for _, status := range []int{200, 200, 429} {
		s.app.mustSend(t, "a@qa.example", status)
	}
	s.app.must(t, "GET", "/mailboxes/mallory@example.com", "", 200)
	does(t, operatorOf(s.URL), exitOK, "case        disposable: deny (rules.yaml:3)\n", "show", "mallory@example.com")
	does(t, operatorOf(s.URL), exitOK, "0 of 2", "show", "b@qa.example")

	answer := s.app.callSupabase(t, event(t, "signup", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6e", "mallory"))
	if answer.Status != 200 || !strings.Contains(answer.Raw, `"http_code":422`) || !strings.Contains(answer.Raw, "This address does not accept the email.") {
		t.Errorf("Supabase is told %d %s", answer.Status, answer.Raw)
	}
	at := regexp.MustCompile(`"smtp_address":"([^"]+)"`).FindStringSubmatch(s.Log.String())
	if at == nil {
		t.Fatalf("no door in the log: %s", s.Log)
	}
	err := smtp.SendMail(at[1], smtp.PlainAuth("", "app", apiKey, "127.0.0.1"), "no-reply@acme.example", []string{"mallory@example.com"}, []byte(submitted))
	if err == nil || !strings.Contains(err.Error(), "5.7.1 the rule disposable denies this recipient") {
		t.Errorf("the SMTP door says %v", err)
	}
	for _, line := range []string{
		`mailgate_sends_total{door="http",limit="",outcome="recipient-denied",rule="disposable"} 3`, `mailgate_sends_total{door="http",limit="",outcome="recipient-denied",rule="bounced"} 1`,
		`mailgate_sends_total{door="smtp",limit="",outcome="recipient-denied",rule="disposable"} 1`, `mailgate_sends_total{door="supabase",limit="",outcome="recipient-denied",rule="disposable"} 1`,
		`mailgate_shadow_refusals_total{door="http",limit="denied",rule="trial"} 1`,
	} {
		if !s.shows(t, line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
	servertest.Eventually(t, "the denials are logged", func() bool { return len(s.Log.Lines(`"problem":"recipient-denied"`)) > 0 })
	if denied := s.Log.Lines(`"problem":"recipient-denied"`); denied[0]["rule"] == nil || strings.Contains(s.Log.String(), "mallory") {
		t.Errorf("the log has %v", denied)
	}
	if n := len(relay.List()); n != 4 {
		t.Errorf("%d emails were sent", n)
	}
}

// A list that is wrong changes nothing, and the log names its line.
func TestReload_WrongList_KeepsTheOldOne(t *testing.T) {
	t.Parallel()
	s := startSite(t, "rules: []", settingsFor(startRelay(t).URL(), inMemory))
	list := filepath.Join(filepath.Dir(s.rules), "list.conf")
	write := func(text, says string) {
		t.Helper()
		servertest.Write(t, list, text)
		s.with(t, "deny: [{name: disposable, file: list.conf}]", says)
	}
	write("# published\nmailinator.example\n", `"rules_added":"denial disposable"`)
	s.app.mustSend(t, "a@mailinator.example", 422)
	for text, says := range map[string]string{
		"": list + ": it lists nothing", "other.example\nmailin": list + ":2: the last line", "other.example\nnet\n": list + ":2: it is not a domain",
		"other.example\nco.jp\n": list + ":2: this is a whole public suffix", "acme.example\n": list + ":1: it denies the domain of MAILGATE_FROM", "\x7fELF\x02\n": list + ":1: this is not text",
	} {
		write(text, "reload failed; keeping the current rules")
		if !strings.Contains(s.Log.String(), says) {
			t.Errorf("the log does not say %s", says)
		}
		s.app.mustSend(t, "b@mailinator.example", 422)
		s.app.must(t, "POST", "/mailboxes/peek", `{"email":"a@other.example"}`, 200)
	}
	operator := newClient(t, s.URL, adminKey)
	operator.must(t, "POST", "/admin/what-if", "", 422)
	servertest.Write(t, list, "example.com\n")
	s.app.must(t, "POST", "/send-code", `{"email":"a@example.com","client_ip":"203.0.113.7"}`, 200)
	if r := operator.must(t, "POST", "/admin/what-if", "", 200); !strings.Contains(r.Raw, `"sends":1,"refused":1,"challenged":0,"mailboxes":1,"visitors":1,"rules":[{"rule":"disposable",`) {
		t.Errorf("the trial says %s", r.Raw)
	}
	write("other.example\r\n", `"rules_changed":"denial disposable"`)
	s.app.mustSend(t, "a@other.example", 422)
	s.app.mustSend(t, "a@mailinator.example", 200)
	// A public suffix in a long list costs that line alone.
	var published strings.Builder
	for i := range 99 {
		fmt.Fprintf(&published, "disposable%d.example\n", i)
	}
	write("co.uk\n"+published.String(), `"rules_changed":"denial disposable"`)
	s.awaitLine(t, list+": 1 of 100 entries are left out, as they are whole public suffixes", "level")
	s.app.mustSend(t, "a@disposable98.example", 422)
	s.app.mustSend(t, "a@some.co.uk", 200)
}

// A reload of long lists refuses nothing meanwhile.
func TestReload_LongLists_RefusesNothing(t *testing.T) {
	t.Parallel()
	s := startSite(t, "rules: []", settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_CACHE_BYTES=28MiB"))
	var domains, customers strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&domains, "disposable%d.example.com\n", i)
	}
	for i := range 10_000 {
		fmt.Fprintf(&customers, "user%d@example.com\n", i)
	}
	dir := filepath.Dir(s.rules)
	servertest.Write(t, filepath.Join(dir, "list.conf"), domains.String())
	servertest.Write(t, filepath.Join(dir, "customers.txt"), customers.String())
	done := make(chan struct{})
	var senders sync.WaitGroup
	for i := range 2 {
		senders.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if r, err := s.app.ask("POST", "/send-code", bodyFor(fmt.Sprintf("u%d-%d@example.com", i, n)), nil); err != nil || r.Status != 200 {
					t.Errorf("a send during a reload: %v, %d %s", err, r.Status, r.Raw)
				}
			}
		})
	}
	began := time.Now()
	s.with(t, `
deny: [{name: disposable, file: list.conf}]
overrides: [{rule: mailbox, file: customers.txt, limit: day=100/24h, comment: customers}]`, `"rules_changed":"mailbox"`)
	t.Logf("the reload took %d ms", time.Since(began).Milliseconds())
	close(done)
	senders.Wait()
	s.app.mustSend(t, "a@disposable99999.example.com", 422)
	for range 2 {
		s.app.mustSend(t, "user77@example.com", 200)
	}
}
