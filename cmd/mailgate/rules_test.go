package main

import (
	"fmt"
	"strings"
	"testing"
)

// A rule that counts otherwise than before begins anew, and the log warns of it; a
// sliding-log under another window does not. What a rule counted by something else is not
// in its way.
func TestReloadThatBeginsAnew(t *testing.T) {
	rule := func(more string) string { return "rules: [{name: a, " + more + "}]" }
	onEachStore(t, func(t *testing.T, environ ...string) {
		s := startSite(t, rule("by: domain, algorithm: fixed-window, limit: decade=1/87840h"), environ...)
		n := 0
		once := func() {
			t.Helper()
			for _, status := range []int{200, 429} {
				n++
				s.app.mustSend(t, fmt.Sprintf("user%d@example.com", n), status)
			}
		}
		once()
		const anew = `"rules_changed":"a","rules_restarted":"a"`
		s.with(t, rule("by: domain, algorithm: fixed-window, limit: years=1/43920h"), anew)
		once()
		s.with(t, rule("by: domain, algorithm: sliding-log, limit: day=1/24h"), `"level":"WARN","msg":"reloaded","rules_added":"","rules_removed":"",`+anew)
		once()
		s.with(t, rule("by: domain, algorithm: sliding-log, limit: day=1/25h"), `"rules_changed":"a","rules_restarted":""`)
		s.app.mustSend(t, "one-more@example.com", 429)
		s.with(t, rule("by: template, algorithm: sliding-log, limit: day=1/25h"), anew)
		once()
	})
}

// Two rules of one name that count by different things never share a record, whatever is
// counted: here a domain and a key of one spelling.
func TestRecordsOfOneName(t *testing.T) {
	s := startSite(t, "rules: [{name: a, by: api_key, limit: day=1/24h}]", "MAILGATE_DATA_DIR=:memory:", "MAILGATE_API_KEYS=example.com:"+apiKey)
	s.app.mustSend(t, "alice@example.com", 200)
	s.app.mustSend(t, "bob@example.com", 429)
	s.with(t, "rules: [{name: a, by: domain, limit: day=1/24h}]", `"rules_restarted":"a"`)
	s.app.mustSend(t, "bob@example.com", 200)
	s.app.mustSend(t, "carol@example.com", 429)
}

// The log at start and at a reload, the metrics and check-config have one digest, and it
// is another for other rules.
func TestRulesDigest(t *testing.T) {
	s := startSite(t, ofDomain(3), "MAILGATE_DATA_DIR=:memory:")
	digest := s.log.await(t, "the start", logged("serving", "rules_digest"))
	of := func(digest string) string { return fmt.Sprintf("mailgate_rules_info{digest=%q} 1\n", digest) }
	if len(digest) != 10 || !strings.Contains(s.metrics(t), of(digest)) {
		t.Errorf("%q is not in the metrics", of(digest))
	}
	if _, stdout, _ := run(t, settingsFor("smtps://relay.example"), "check-config", "--rules="+s.rules); !strings.Contains(stdout, "(digest "+digest+")") {
		t.Errorf("not %s: %s", digest, stdout)
	}
	s.with(t, "# as it was\n"+ofDomain(3), `"rules_digest":"`+digest+`"`)
	if !strings.Contains(s.metrics(t), of(digest)) {
		t.Errorf("%q is not in the metrics any more", of(digest))
	}
	s.with(t, ofDomain(4), `"rules_digest":"`)
	if metrics := s.metrics(t); strings.Contains(metrics, digest) || strings.Count(metrics, "\nmailgate_rules_info{") != 1 {
		t.Errorf("%s is still in force", digest)
	}
}

// A rule that exempts a key which nobody has is told of at start, at a reload and by
// check-config. Other exempt keys are not.
func TestExemptKeysThatAreNotSet(t *testing.T) {
	const rules = "rules: [{name: client-ip, exempt: {api_keys: [app, apq, bpp]}}]"
	const says = `"msg":"the rule client-ip exempts API keys that are not set: apq, bpp"`
	s := startSite(t, rules, "MAILGATE_DATA_DIR=:memory:")
	for n := range 2 {
		s.log.await(t, "a warning", func(log string) (string, bool) { return "", strings.Count(log, says) == n+1 })
		if n == 0 {
			s.reload(t)
		}
	}
	_, stdout, _ := run(t, settingsFor("smtps://relay.example"), "check-config", "--rules="+s.rules)
	if want := "\nnote: the rule client-ip exempts API keys that are not set: apq, bpp\n"; !strings.Contains(stdout, want) {
		t.Errorf("%q is not in %s", want, stdout)
	}
}

// An address in the wrong place is not in the log after a reload, whatever is wrong there;
// that no log of these tests has one is seen at their end.
func TestReloadErrorsHaveNoAddress(t *testing.T) {
	s := startSite(t, "rules: []", "MAILGATE_DATA_DIR=:memory:")
	for _, part := range []string{"limit: alice@example.com=1/60s", "limit: q=1/1s, exempt: {networks: [alice@example.com]}",
		"limit: q=1/1s, exempt: {alice@example.com: 1}", "limit: q=1/1s, alice@example.com: {a: 1, a: 2}"} {
		s.with(t, "rules: [{name: a, by: all, "+part+"}]", `"reload failed`)
	}
	s.with(t, strings.Repeat("[", 100_000), "it is nested too deeply")
}
