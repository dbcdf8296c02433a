package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// A site is a server with files that it can be told to read again.
type site struct {
	*process
	relay            *sandbox.Server
	rules, templates string // where they are
	app              client
}

// startSite starts a server by these rules, with templates of its own, a relay that keeps
// what it gets, and the history where the environment says.
func startSite(t *testing.T, rules string, environ ...string) *site {
	t.Helper()
	relay := startRelay(t, sandbox.Options{KeepMessages: 1 << 20})
	s := startSiteBefore(t, relay.URL(), rules, environ...)
	s.relay = relay
	return s
}

// startSiteBefore is startSite with another relay.
func startSiteBefore(t *testing.T, relayURL, rules string, environ ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{rules: filepath.Join(dir, "rules.yaml"), templates: filepath.Join(dir, "templates")}
	write(t, s.rules, rules)
	s.subject(t, "First {{.Code}}")
	s.process = startServer(t, settingsFor(relayURL, append(environ, "MAILGATE_RULES="+s.rules, "MAILGATE_TEMPLATES="+s.templates)...))
	s.app = newClient(t, s.URL, apiKey)
	return s
}

// write makes a file, and its directory, and returns its path.
func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *site) subject(t testing.TB, text string) {
	t.Helper()
	write(t, filepath.Join(s.templates, "code", "en", "subject.txt"), text)
}

// reload tells the server to read its files again and returns the line that it logs.
func (s *site) reload(t testing.TB) string {
	t.Helper()
	lines := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, `"msg":"reloaded"`) || strings.Contains(line, `"msg":"reload failed`) {
				all = append(all, line)
			}
		}
		return all
	}
	before := len(lines(s.log.String()))
	s.signal(t, syscall.SIGHUP)
	return s.log.await(t, "the reload", func(text string) (string, bool) {
		if all := lines(text); len(all) > before {
			return all[before], true
		}
		return "", false
	})
}

// with is reload with other rules, which has to say this.
func (s *site) with(t testing.TB, rules, says string) {
	t.Helper()
	write(t, s.rules, rules)
	if line := s.reload(t); !strings.Contains(line, says) {
		t.Errorf("the log says %s, want %s", line, says)
	}
}

// onEachStore runs a test with the history on disk and in Redis.
func onEachStore(t *testing.T, test func(t *testing.T, environ ...string)) {
	t.Run("disk", func(t *testing.T) { test(t, "MAILGATE_DATA_DIR="+t.TempDir()) })
	t.Run("redis", func(t *testing.T) {
		test(t, "MAILGATE_REDIS_URL="+redistest.Alone(t).URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared)
	})
}

// ofDomain are rules with a limit of so many sends to a domain, in a window that nobody
// lives to see the edge of.
func ofDomain(limit int) string {
	return fmt.Sprintf("rules:\n- {name: domain, by: domain, algorithm: fixed-window, limit: decade=%d/87840h}\n", limit)
}

// What was counted goes on to count by the same limit, by another and by none better
// than a file that is broken.
func TestReloadKeepsCounts(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		s := startSite(t, ofDomain(3), environ...)
		n := 0
		send := func(status int) {
			t.Helper()
			n++
			a := s.app.mustSend(t, fmt.Sprintf("user%d@example.com", n), status)
			if status == 429 && (a.Body.Rule != "domain" || a.Body.Limit != "decade") {
				t.Errorf("refused by %+v", a.Body)
			}
		}
		send(200)
		send(200)
		s.with(t, ofDomain(3)+"# as it was\n", `"rules_added":"","rules_removed":"","rules_changed":"","rules_restarted":"","rules":"unchanged","templates":"unchanged"`)
		send(200)
		send(429)
		s.with(t, ofDomain(5), `"rules_changed":"domain"`)
		send(200)
		send(200)
		send(429)
		s.with(t, "rules: [{name: domain, by: domain, limit: none}]", "rule domain: limit: tier")
		send(429)
		s.with(t, ofDomain(4), `"rules_changed":"domain"`)
		send(429)
		s.with(t, "rules: []", `"rules_removed":"domain"`)
		send(200)
		s.with(t, ofDomain(6), `"rules_added":"domain"`)
		send(200)
		send(429)
	})
}

// The mailbox's own limit can be another after a reload, on the same history.
func TestReloadOfTheMailboxRule(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		s := startSite(t, "rules: []", environ...)
		s.app.mustSend(t, "alice@example.com", 200)
		s.app.mustSend(t, "alice@example.com", 429)
		s.with(t, "rules: [{name: mailbox, limit: day=2/24h}]", `"rules_changed":"mailbox"`)
		s.app.mustSend(t, "alice@example.com", 200)
		if a := s.app.mustSend(t, "alice@example.com", 429); a.Body.Rule != "mailbox" || a.Body.Limit != "day" {
			t.Errorf("%+v", a.Body)
		}
		s.with(t, "rules: [{name: mailbox, limit: day=2/24h, exempt: {mailboxes: ['al*@example.com']}}]", `"rules_changed":"mailbox"`)
		s.app.mustSend(t, "alice@example.com", 200)
		s.with(t, "rules: [{name: mailbox, limit: day=2/24h, shadow: true}]", `"rules_changed":"mailbox"`)
		s.app.mustSend(t, "alice@example.com", 200)
		s.log.await(t, "a warning", logged("THE RULE MAILBOX IS IN SHADOW: any mailbox can be sent any number of emails", "level"))
	})
}

// Each algorithm counts for rules and for actions, and a rule and an action of one name
// have nothing in common.
func TestActions(t *testing.T) {
	const algorithms = `rules:
- {name: a, by: all, algorithm: sliding-log, limit: hour=1/1h}
- {name: client-ip, off: true}
actions:
- {name: a, algorithm: sliding-log, limit: 'hour=1/1h,day=3/24h'}
- {name: b, algorithm: sliding-window, limit: hour=1/1h, parts: 6}
- {name: c, algorithm: fixed-window, limit: decade=1/87840h}
- {name: d, algorithm: token-bucket, limit: hour=1/1h, burst: 1}
- {name: e, algorithm: leaky-bucket, limit: hour=1/1h, queue: 0}
`
	onEachStore(t, func(t *testing.T, environ ...string) {
		s := startSite(t, algorithms, environ...)
		s.app.mustSend(t, "alice@example.com", 200)
		if a := s.app.mustSend(t, "bob@example.com", 429); a.Body.Rule != "a" {
			t.Errorf("refused by %+v", a.Body)
		}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			take := func(status int) { s.app.must(t, "POST", "/actions/"+name+"/take", `{"subject":"alice"}`, status) }
			take(200)
			take(429)
		}
		s.with(t, strings.Replace(algorithms, "hour=1/1h,day=3/24h", "hour=2/1h,day=3/24h", 1), `"rules_changed":"action a"`)
		s.app.must(t, "POST", "/actions/a/take", `{"subject":"alice"}`, 200)
		s.app.must(t, "POST", "/actions/b/take", `{"subject":"alice"}`, 429)
		s.with(t, "rules: []", `"rules_removed":"a, action a, action b, action c, action d, action e"`)
		s.app.must(t, "POST", "/actions/a/take", `{"subject":"alice"}`, 404)
	})
}

// All of the files is put in force, or nothing: texts and rules, and a mistake in either.
func TestReloadIsWhole(t *testing.T) {
	s := startSite(t, ofDomain(2), "MAILGATE_DATA_DIR=:memory:")
	subjects := func() string {
		var all []string
		for _, mail := range s.relay.List() {
			all = append(all, strings.Fields(mail.Subject)[0])
		}
		return strings.Join(all, " ")
	}
	s.app.mustSend(t, "a@example.com", 200)
	s.subject(t, "Second {{.Code}}")
	if line := s.reload(t); !strings.Contains(line, `"rules_changed":"","rules_restarted":"","rules":"unchanged","templates":"changed"`) {
		t.Error(line)
	}
	s.app.mustSend(t, "b@example.com", 200)

	s.subject(t, "Third {{.Cod}}")
	s.with(t, ofDomain(9), "code/en/subject.txt")
	s.app.mustSend(t, "c@example.com", 429)
	s.subject(t, "Fourth {{.Code}}")
	s.with(t, "rules: {}", "it must be a list")
	s.app.mustSend(t, "d@example.net", 200)
	s.with(t, "", "it is empty")
	if err := os.Remove(s.rules); err != nil {
		t.Fatal(err)
	}
	if right := metric(t, s.process, "mailgate_reload_last_successful"); right != "0" {
		t.Errorf("the files are wrong, and the last reload successful: %s", right)
	}
	if line := s.reload(t); !strings.Contains(line, "MAILGATE_RULES: cannot read the file") {
		t.Error(line)
	}
	s.app.mustSend(t, "c@example.com", 429)
	s.with(t, ofDomain(3), `"rules_changed":"domain","rules_restarted":"","rules":"changed","templates":"changed"`)
	s.app.mustSend(t, "c@example.com", 200)
	for want, n := range map[string]int{"First": 1, "Second": 2, "Third": 0, "Fourth": 1} {
		if got := subjects(); strings.Count(got, want) != n {
			t.Errorf("%s: not %d times in the subjects %s", want, n, got)
		}
	}
	metrics := s.metrics(t)
	for _, want := range []string{`mailgate_reloads_total{result="done"} 2`, `mailgate_reloads_total{result="failed"} 4`, "mailgate_reload_last_successful 1", "mailgate_reload_last_success_timestamp_seconds 1."} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not in the metrics", want)
		}
	}
}

// Reloads under load lose no request, and the last word of the files is in force.
func TestReloadUnderLoad(t *testing.T) {
	const clients, reloads = 8, 30
	s := startSite(t, ofDomain(1_000_000), "MAILGATE_DATA_DIR="+t.TempDir())
	done := make(chan struct{})
	var sent atomic.Int64
	var group sync.WaitGroup
	for c := range clients {
		app := newClient(t, s.URL, apiKey)
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				a, err := app.sendCode(fmt.Sprintf("c%d-%d@example.com", c, n))
				if err != nil || a.Status != 200 {
					t.Errorf("%v, %d: %+v", err, a.Status, a.Body)
					return
				}
				sent.Add(1)
			}
		})
	}
	for i := range reloads {
		switch i % 3 {
		case 0:
			s.with(t, ofDomain(2_000_000+i)+"actions: [{name: a, limit: q=1/1s}]\n", `"rules_changed":"domain"`)
		case 1:
			s.with(t, "rules: [", "this is not valid YAML")
		case 2:
			s.subject(t, fmt.Sprintf("Number %d {{.Code}}", i))
			s.with(t, ofDomain(2_000_000+i), `"templates":"changed"`)
		}
	}
	before := sent.Load()
	servertest.Eventually(t, "some more mails", func() bool { return sent.Load() > before+clients })
	close(done)
	group.Wait()
	total := int(sent.Load())
	if n := len(s.relay.List()); n != total {
		t.Errorf("%d mails, and %d were answered 200", n, total)
	}
	s.with(t, ofDomain(total), `"rules_changed":"domain"`)
	s.app.mustSend(t, "one-more@example.com", 429)
	s.with(t, ofDomain(total+1), `"rules_changed":"domain"`)
	s.app.mustSend(t, "one-more@example.com", 200)
	s.signal(t, syscall.SIGTERM)
	if status := s.end(t); status != exitOK {
		t.Errorf("exit status %d", status)
	}
	t.Logf("%d mails during %d reloads", total, reloads)
}

// A send that is under way while its rule is removed ends as it began: when the relay is
// lost, that rule has its place back.
func TestReloadDuringASend(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		relay := startFaulty(t, fault.Script{At: fault.RCPT, Kind: fault.Silence})
		s := startSiteBefore(t, plain(relay), ofDomain(1), environ...)
		waitsFor := func() string {
			return s.app.must(t, "GET", "/mailboxes/bob@example.com", "", 200).Body.Rule
		}
		asked := make(chan answer, 1)
		go func() {
			a, err := s.app.sendCode("alice@example.com")
			if err != nil {
				t.Error(err)
			}
			asked <- a
		}()
		servertest.Eventually(t, "the rule to be charged", func() bool { return waitsFor() == "domain" })
		s.with(t, "rules: []", `"rules_removed":"domain"`)
		if rule := waitsFor(); rule != "" {
			t.Errorf("rule %s is still in force", rule)
		}
		relay.Close()
		if a := <-asked; a.Status != 503 {
			t.Errorf("%d: %+v", a.Status, a.Body)
		}
		s.with(t, ofDomain(1), `"rules_added":"domain"`)
		servertest.Eventually(t, "the place to be free again", func() bool { return waitsFor() == "" })
	})
}
