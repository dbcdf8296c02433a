package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
)

// A site is a server with files that it can be told to read again.
type site struct {
	*process
	rules, templates string // their paths
	app              client
}

// startSite starts a server with these rules and templates of its own.
func startSite(t *testing.T, rules string, environ []string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{rules: filepath.Join(dir, "rules.yaml"), templates: filepath.Join(dir, "templates")}
	servertest.Write(t, s.rules, rules)
	s.subject(t, "First {{.Code}}")
	s.process = startServer(t, append(environ, "MAILGATE_RULES="+s.rules, "MAILGATE_TEMPLATES="+s.templates))
	s.app = newClient(t, s.URL, apiKey)
	return s
}

func (s *site) subject(t testing.TB, text string) {
	t.Helper()
	servertest.Write(t, filepath.Join(s.templates, "code", "en", "subject.txt"), text)
}

// reload tells the server to read its files again, after which the log has to say this.
func (s *site) reload(t testing.TB, says string) {
	t.Helper()
	lines := func() []string { return regexp.MustCompile(`.*"msg":"reload.*`).FindAllString(s.Log.String(), -1) }
	before := len(lines())
	s.Signal(t, syscall.SIGHUP)
	servertest.Eventually(t, "the reload", func() bool { return len(lines()) > before })
	if line := lines()[before]; !strings.Contains(line, says) {
		t.Errorf("the log says %s, want %s", line, says)
	}
}

// with is reload with other rules.
func (s *site) with(t testing.TB, rules, says string) {
	t.Helper()
	servertest.Write(t, s.rules, rules)
	s.reload(t, says)
}

// ofDomain are rules that allow so many sends to a domain, in a window so long that it does not
// end during a test.
func ofDomain(limit int) string {
	return fmt.Sprintf("rules:\n- {name: domain, by: domain, algorithm: fixed-window, limit: decade=%d/87840h}\n", limit)
}

// A rule with another limit keeps its counts. One that counts otherwise than before starts from
// zero, and the log warns of it; a sliding-log with another window does not.
func TestReload_RuleChanges_CountsAreKeptOrRestarted(t *testing.T) {
	t.Parallel()
	s := startSite(t, ofDomain(1), settingsFor(startRelay(t).URL(), "MAILGATE_DATA_DIR="+t.TempDir()))
	n := 0
	send := func(statuses ...int) {
		t.Helper()
		for _, status := range statuses {
			n++
			s.app.mustSend(t, fmt.Sprintf("user%d@example.com", n), status)
		}
	}
	rule := func(more string) string { return "rules: [{name: domain, " + more + "}]" }
	const restarted, kept = `"rules_changed":"domain","rules_restarted":"domain"`, `"rules_changed":"domain","rules_restarted":""`
	send(200, 429)
	s.with(t, ofDomain(2), kept)
	send(200, 429)
	s.with(t, "rules: []", `"rules_removed":"domain"`)
	send(200)
	s.with(t, ofDomain(3), `"rules_added":"domain"`)
	send(200, 429)
	s.with(t, rule("by: domain, limit: day=1/24h"), `"level":"WARN","msg":"reloaded","rules_added":"","rules_removed":"",`+restarted)
	send(200, 429)
	s.with(t, rule("by: domain, limit: day=1/25h"), kept)
	send(429)
	s.with(t, rule("by: template, limit: day=1/25h"), restarted)
	send(200, 429)
}

// An action shares nothing with a rule of the same name, and keeps its counts under another limit.
func TestReload_Actions_KeepCounts(t *testing.T) {
	t.Parallel()
	const both = "rules: [{name: a, by: all, limit: hour=1/1h}]\nactions: [{name: a, limit: 'hour=1/1h,day=3/24h'}]"
	s := startSite(t, both, settingsFor(startRelay(t).URL(), inMemory))
	take := func(status int) {
		t.Helper()
		s.app.must(t, "POST", "/actions/a/take", `{"subject":"alice"}`, status)
	}
	s.app.mustSend(t, "alice@example.com", 200)
	take(200)
	take(429)
	s.with(t, strings.Replace(both, "'hour=1/1h", "'hour=2/1h", 1), `"rules_changed":"action a"`)
	take(200)
	s.with(t, "rules: [{name: mailbox, shadow: true}]", `"rules_removed":"a, action a"`)
	take(404)
	s.app.mustSend(t, "alice@example.com", 200)
}

// A reload puts all files in force or, if there is a mistake in any, nothing. The digest in the log, the
// metrics and check-config says which rules are in force.
func TestReload_MistakeInAFile_ChangesNothing(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	s := startSite(t, ofDomain(2), settingsFor(relay.URL(), inMemory))
	s.app.mustSend(t, "a@example.com", 200)
	s.subject(t, "Second {{.Code}}")
	s.reload(t, `"rules_changed":"","rules_restarted":"","rules":"unchanged","templates":"changed"`)
	s.app.mustSend(t, "b@example.com", 200)
	s.subject(t, "Third {{.Cod}}")
	s.with(t, ofDomain(9), "code/en/subject.txt")
	s.subject(t, "Fourth {{.Code}}")
	if err := os.Remove(s.rules); err != nil {
		t.Fatal(err)
	}
	s.reload(t, "MAILGATE_RULES: cannot read the file")
	if !s.shows(t, "mailgate_reload_last_successful 0") {
		t.Error("the metrics do not show the mistake")
	}
	s.app.mustSend(t, "c@example.com", 429)
	s.with(t, ofDomain(3), `"rules_changed":"domain","rules_restarted":"","rules":"changed","templates":"changed"`)
	s.app.mustSend(t, "c@example.com", 200)
	var subjects []string
	for _, mail := range relay.List() {
		subjects = append(subjects, strings.Fields(mail.Subject)[0])
	}
	if got := strings.Join(subjects, " "); got != "First Second Fourth" {
		t.Errorf("the subjects are %s", got)
	}
	digest := s.Log.Lines(`"templates":"changed"`)[1]["rules_digest"]
	does(t, settingsFor("smtps://relay.example"), exitOK, fmt.Sprintf("(digest %s)", digest), "check-config", "--rules="+s.rules)
	if !s.shows(t, "mailgate_reload_last_successful 1") || !s.shows(t, fmt.Sprintf("mailgate_rules_info{digest=%q} 1", digest)) {
		t.Errorf("the metrics do not show the digest %v", digest)
	}
}
