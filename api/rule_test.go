package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// ruleForEach makes one for each trait, named by it.
func ruleForEach(r *rig, _ *rules.Rule) (all []rules.Rule) {
	for _, by := range rules.Bys() {
		name := strings.ReplaceAll(string(by), "_", "-") + "-rule"
		all = append(all, rules.Rule{Name: name, By: by, Limiter: r.counted(name, must(throttle.ParsePolicy("hour=20/1h"))(r.t))})
	}
	return all
}

// What an operator is told of a rule, byte for byte, and what is logged of it.
func TestRule_PeekAndReset_Answers(t *testing.T) {
	r := newRig(t, setup{rules: ruleForEach})
	const subject = `"subject":"2001:db8:1:2:ffff::1"` // a visitor is the first 64 bits
	r.sendAs(appKey, "six@example.com", `,"client_ip":"2001:db8:1:2::3"`).is(t, 200, "")
	seen := r.do("POST", "/admin/rules/client-ip-rule/peek", opsKey, "{"+subject+"}")
	seen.is(t, 200, "")
	line := journal.about(t, seen.header.Get("X-Request-Id"))[0]
	name, _ := line["subject"].(string)
	if want := fmt.Sprintf(`{"allowed":true,"subject":%q,"rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z",`+
		`"limits":[{"name":"hour","limit":20,"window_ms":3600000,"remaining":19,"wait_ms":0}],"degraded":false}`, name); seen.text != want {
		t.Errorf("seen as\n%s, want\n%s", seen.text, want)
	}
	seen.carries(t, map[string]string{"RateLimit": `"hour";r=19;t=3600`, "RateLimit-Policy": `"hour";q=20;w=3600`})
	seen.logged(t, fields{"rule": "client-ip-rule", "route": "admin-rule-peek", "key": "alex"})
	got := r.do("POST", "/admin/rules/client-ip-rule/reset", opsKey, "{"+subject+`,"reason":"ticket 9"}`)
	if want := fmt.Sprintf(`{"rule":"client-ip-rule","subject":%q,"cleared":1}`, name); got.status != 200 || got.text != want {
		t.Errorf("reset: %d %s, want %s", got.status, got.text, want)
	}
	got.audited(t, "rule reset", map[string]any{"reason": "ticket 9", "rule": "client-ip-rule", "subject": name, "cleared": 1.0})
	if strings.Contains(journal.text(), "2001:db8:1:2") {
		t.Error("the log has the visitor's address")
	}
	r.has(t, "mailgate_resets_total 1")
}

func TestRule_Invalid_Refused(t *testing.T) {
	r := newRig(t, setup{rules: ruleForEach})
	for _, verb := range []string{"peek", "reset"} {
		ask := func(rule, body string) reply { return r.do("POST", "/admin/rules/"+rule+"/"+verb, opsKey, body) }
		for _, rule := range []string{"unknown", "Client-ip-rule", "clien%74-ip-rule", "lookups"} {
			ask(rule, `{"subject":"203.0.113.7"}`).is(t, 404, "unknown-rule")
		}
		ask("client-ip-rule", `{"subject":1}`).is(t, 400, "bad-request")
		for _, tt := range [][3]string{
			{"mailbox", `"alice@example.com"`, "rule:invalid"}, {"mailbox-rule", `"alice@example.com"`, "rule:invalid"},
			{"client-ip-rule", ``, "subject:missing"}, {"client-ip-rule", `""`, "subject:empty"},
			{"client-ip-rule", `"203.0.113"`, "subject:invalid"}, {"client-ip-rule", `"203.0.113.0/24"`, "subject:invalid"}, {"client-ip-rule", `"fe80::1%eth0"`, "subject:invalid"},
			{"domain-rule", `"alice@example.com"`, "subject:invalid"}, {"domain-rule", `"example"`, "subject:invalid"}, {"domain-rule", `" example.com"`, "subject:invalid"},
			{"api-key-rule", `"shops"`, "subject:unknown"}, {"api-key-rule", `"local"`, "subject:unknown"}, {"api-key-rule", `"alex"`, "subject:unknown"},
			{"template-rule", `"nothing"`, "subject:unknown"}, {"all-rule", `"203.0.113.7"`, "subject:invalid"}, {"all-rule", `""`, "subject:empty"},
		} {
			body := `{}`
			if tt[1] != "" {
				body = `{"subject":` + tt[1] + `}`
			}
			ask(tt[0], body).isInvalid(t, tt[2])
		}
	}
	r.do("POST", "/admin/rules/all-rule/peek", opsKey, `{"reason":"none"}`).is(t, 400, "bad-request")
	if got := r.do("POST", "/admin/rules/mailbox/reset", opsKey, `{"subject":"alice@example.com"}`); !strings.Contains(got.text, "POST /admin/mailboxes/{email}/reset") {
		t.Errorf("it does not say which call to use: %s", got.text)
	}
}

// Where no key is asked for all callers are one, which has a name.
func TestRule_NoKeys_CallerHasAName(t *testing.T) {
	r := newRig(t, setup{options: keyless, rules: ruleForEach})
	r.do("POST", "/send-code", "", `{"email":"nokey@example.com"}`).is(t, 200, "")
	r.do("POST", "/admin/rules/api-key-rule/reset", "", `{"subject":"local"}`).says(t, fields{"cleared": 1.0})
}

// A reason has at most 500 characters, on every reset.
func TestReset_LongReason_Refused(t *testing.T) {
	r := newRig(t, setup{rules: ruleForEach, actions: threeActions(&failing{})})
	for path, subject := range map[string]string{"/admin/rules/all-rule/reset": "", "/admin/actions/reply/reset": `"subject":"x",`, "/admin/mailboxes/a@example.com/reset": ""} {
		r.do("POST", path, opsKey, `{`+subject+`"reason":"`+strings.Repeat("口", 500)+`"}`).is(t, 200, "")
		r.do("POST", path, opsKey, `{`+subject+`"reason":"`+strings.Repeat("x", 501)+`"}`).is(t, 422, "invalid")
	}
}
