package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A ruled is how an operator names the subject of a trait's sends, not always in the spelling
// that it is counted by, and somebody else's.
type ruled struct{ own, others string }

func subjects() map[rules.By]ruled {
	return map[rules.By]ruled{
		rules.ByClientIP: {`"subject":"::ffff:203.0.113.7"`, `"subject":"203.0.113.8"`},
		rules.ByAPIKey:   {`"subject":"shop"`, `"subject":"blog"`},
		rules.ByDomain:   {`"subject":"Mail.Example.COM"`, `"subject":"other.example"`},
		rules.ByTemplate: {`"subject":"code"`, `"subject":"invite"`},
		rules.ByAll:      {``, ``},
	}
}

// Whoever a rule refuses is seen and freed by an operator, whatever it counts by and however,
// and nobody else is.
func TestResetOfARule(t *testing.T) {
	counting := algorithms(t)
	for i, name := range slices.Sorted(maps.Keys(counting)) {
		for j, tt := range traits() {
			subject, countedApart := subjects()[tt.by]
			if !countedApart {
				continue // a mailbox has a reset of its own
			}
			store, counted := []string{"memory", "disk"}[(i+j)%2], counting[name]
			t.Run(fmt.Sprint(tt.by, "/", name, "/", store), func(t *testing.T) {
				tt.isFreed(newRig(t, setup{
					policy:  "day=100/24h",
					options: func(o *api.Options) { o.Live.Composer = composerWith(t, invitation) },
					rules: func(r *rig, _ *rules.Rule) []rules.Rule {
						return []rules.Rule{{Name: "extra", By: tt.by, Limiter: counted.on(r, store)}}
					},
				}), subject, counted.limit)
			})
		}
	}
}

func (tt trait) isFreed(r *rig, subject ruled, limit string) {
	t, sends := r.t, 0
	send := func() reply {
		sends++
		return r.sendAs(appKey, fmt.Sprintf("user%d@example.com", sends), tt.rest)
	}
	rule := func(verb, body string) reply {
		got := r.do("POST", "/admin/rules/extra/"+verb, opsKey, "{"+body+"}")
		got.is(t, 200, "")
		return got
	}
	send().is(t, 200, "")
	send().is(t, 200, "")
	refused := send()
	tt.isRefused(t, refused, limit)
	if subject.others != "" {
		if got := rule("reset", subject.others); got.body["cleared"] != 0.0 {
			t.Errorf("another's reset: %s", got.text)
		}
		if got := rule("peek", subject.others); got.body["allowed"] != true || got.body["rule"] != nil {
			t.Errorf("another is seen as %s", got.text)
		}
	}
	seen := rule("peek", subject.own)
	if seen.body["allowed"] != false || seen.body["rule"] != "extra" || seen.body["limit"] != limit || seen.body["wait_ms"] != refused.body["wait_ms"] {
		t.Errorf("seen as %s", seen.text)
	}
	if got := rule("reset", subject.own); got.body["cleared"] != 2.0 || got.body["rule"] != "extra" || got.body["subject"] != seen.body["subject"] {
		t.Errorf("reset: %s", got.text)
	}
	send().is(t, 200, "")
}

// ruleForEach makes one for each trait, named by it.
func ruleForEach(r *rig, _ *rules.Rule) (all []rules.Rule) {
	for _, by := range rules.Bys() {
		name := strings.ReplaceAll(string(by), "_", "-") + "-rule"
		all = append(all, rules.Rule{Name: name, By: by, Limiter: r.counted(name, must(throttle.ParsePolicy("hour=2/1h"))(r.t))})
	}
	return all
}

// What an operator is told of a rule, to the letter, and what is written down of it.
func TestRuleToTheLetter(t *testing.T) {
	r := newRig(t, setup{rules: ruleForEach})
	const subject = `"subject":"2001:db8:1:2:ffff::1"` // of one visitor all are the first 64 bits
	r.sendAs(appKey, "six@example.com", `,"client_ip":"2001:db8:1:2::3"`).is(t, 200, "")
	seen := r.do("POST", "/admin/rules/client-ip-rule/peek", opsKey, "{"+subject+"}")
	seen.is(t, 200, "")
	line := journal.about(t, seen.header.Get("X-Request-Id"))[0]
	name, _ := line["subject"].(string)
	if want := fmt.Sprintf(`{"allowed":true,"subject":%q,"rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z",`+
		`"limits":[{"name":"hour","limit":2,"window_ms":3600000,"remaining":1,"wait_ms":0}],"degraded":false}`, name); seen.text != want {
		t.Errorf("seen as\n%s, want\n%s", seen.text, want)
	}
	seen.carries(t, map[string]string{"RateLimit": `"hour";r=1;t=3600`, "RateLimit-Policy": `"hour";q=2;w=3600`})
	if line["rule"] != "client-ip-rule" || len(name) != 10 || line["route"] != "admin-rule-peek" || line["key"] != "alex" {
		t.Errorf("the log says %v", line)
	}
	got := r.do("POST", "/admin/rules/client-ip-rule/reset", opsKey, "{"+subject+`,"reason":"ticket 9"}`)
	if want := fmt.Sprintf(`{"rule":"client-ip-rule","subject":%q,"cleared":1}`, name); got.status != 200 || got.text != want {
		t.Errorf("reset: %d %s, want %s", got.status, got.text, want)
	}
	lines := journal.about(t, got.header.Get("X-Request-Id"))
	if len(lines) != 2 || lines[0]["msg"] != "rule reset" || lines[0]["key"] != "alex" || lines[0]["reason"] != "ticket 9" ||
		lines[0]["rule"] != "client-ip-rule" || lines[0]["subject"] != name || lines[0]["cleared"] != 1.0 || lines[1]["subject"] != name || lines[1]["rule"] != "client-ip-rule" {
		t.Errorf("the log says %v", lines)
	}
	if text := journal.text(); strings.Contains(text, "2001:db8:1:2") {
		t.Error("the log has the visitor's address")
	}
	if text := r.do("GET", "/metrics", "", "").text; !strings.Contains(text, "mailgate_resets_total 1\n") {
		t.Error("/metrics does not count the reset")
	}
}

// What will not do, in the look and in the reset.
func TestRuleRefusals(t *testing.T) {
	r := newRig(t, setup{rules: ruleForEach})
	for _, verb := range []string{"peek", "reset"} {
		ask := func(rule, body string) reply { return r.do("POST", "/admin/rules/"+rule+"/"+verb, opsKey, body) }
		for _, rule := range []string{"unknown", "Client-ip-rule", "clien%74-ip-rule", "lookups"} {
			ask(rule, `{"subject":"203.0.113.7"}`).is(t, 404, "unknown-rule")
		}
		for _, body := range []string{"", "{", `{"subject":1}`, `{"subject":"a","subject":"b"}`, `{"email":"x"}`} {
			ask("client-ip-rule", body).is(t, 400, "bad-request")
		}
		ask("client-ip-rule", `{"subject":"`+strings.Repeat("x", 16<<10)+`"}`).is(t, 413, "body-too-large")
		for _, tt := range []struct{ rule, body, field, reason string }{
			{"mailbox", `{"subject":"alice@example.com"}`, "rule", "invalid"},
			{"mailbox-rule", `{"subject":"alice@example.com"}`, "rule", "invalid"},
			{"client-ip-rule", `{}`, "subject", "missing"},
			{"client-ip-rule", `{"subject":""}`, "subject", "empty"},
			{"client-ip-rule", `{"subject":"203.0.113"}`, "subject", "invalid"},
			{"client-ip-rule", `{"subject":"203.0.113.0/24"}`, "subject", "invalid"},
			{"client-ip-rule", `{"subject":"fe80::1%eth0"}`, "subject", "invalid"},
			{"domain-rule", `{"subject":"alice@example.com"}`, "subject", "invalid"},
			{"domain-rule", `{"subject":"example"}`, "subject", "invalid"},
			{"domain-rule", `{"subject":" example.com"}`, "subject", "invalid"},
			{"api-key-rule", `{"subject":"shops"}`, "subject", "unknown"},
			{"api-key-rule", `{"subject":"local"}`, "subject", "unknown"},
			{"api-key-rule", `{"subject":"alex"}`, "subject", "unknown"},
			{"template-rule", `{"subject":"nothing"}`, "subject", "unknown"},
			{"all-rule", `{"subject":"203.0.113.7"}`, "subject", "invalid"},
			{"all-rule", `{"subject":""}`, "subject", "empty"},
		} {
			got := ask(tt.rule, tt.body)
			got.is(t, 422, "invalid")
			if wrong := got.body["errors"].([]any)[0].(map[string]any); wrong["field"] != tt.field || wrong["reason"] != tt.reason {
				t.Errorf("%s %s: %s", tt.rule, tt.body, got.text)
			}
		}
	}
	const reset = "/admin/rules/all-rule/reset"
	r.do("POST", reset, opsKey, `{"reason":"`+strings.Repeat("口", 500)+`"}`).is(t, 200, "")
	r.do("POST", reset, opsKey, `{"reason":"`+strings.Repeat("x", 501)+`"}`).is(t, 422, "invalid")
	r.do("POST", "/admin/rules/all-rule/peek", opsKey, `{"reason":"none"}`).is(t, 400, "bad-request")
	got := r.do("POST", "/admin/rules/mailbox/reset", opsKey, `{"subject":"alice@example.com"}`)
	if !strings.Contains(got.text, "POST /admin/mailboxes/{email}/reset") {
		t.Errorf("it does not say which call to use: %s", got.text)
	}
}

// A key in the wrong hands does not read out by a rule who was there.
func TestLooksAtARuleAreBounded(t *testing.T) {
	r := newRig(t, lookingUp(t, nil))
	for _, want := range []int{200, 200, 200, 429} {
		if got := r.do("POST", "/admin/rules/client-ip-rule/peek", opsKey, `{"subject":"203.0.113.7"}`); got.status != want {
			t.Errorf("%d %s, want %d", got.status, got.text, want)
		}
	}
}

// Where no key is asked for every caller is one, and has a name all the same.
func TestRuleOfCallersWithoutKeys(t *testing.T) {
	r := newRig(t, setup{options: keyless, rules: ruleForEach})
	r.do("POST", "/send-code", "", `{"email":"nokey@example.com"}`).is(t, 200, "")
	if got := r.do("POST", "/admin/rules/api-key-rule/reset", "", `{"subject":"local"}`); got.body["cleared"] != 1.0 {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// Without its store nothing is known of a rule, and nothing forgotten.
func TestRuleStoreUnavailable(t *testing.T) {
	store := &failing{}
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		store.Historian = r.counted("broken", throttle.DefaultPolicy())
		return []rules.Rule{{Name: "broken", By: rules.ByClientIP, Limiter: store}}
	}})
	store.rest.Store(true)
	r.do("POST", "/admin/rules/broken/peek", opsKey, `{"subject":"203.0.113.7"}`).is(t, 503, "store-unavailable")
	notReset(t, r.do("POST", "/admin/rules/broken/reset", opsKey, `{"subject":"203.0.113.7","reason":"ticket 9"}`), "rule", 0)
}
