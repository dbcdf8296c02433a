package api_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func tier(name string, limit int, window int64) throttle.Tier {
	return throttle.Tier{Name: name, Limit: limit, Window: time.Duration(window) * time.Millisecond}
}

// also is a rule beside the mailbox's own, with tiers.
func also(name string, by rules.By, policy string) func(*rig, *rules.Rule) []rules.Rule {
	return func(r *rig, _ *rules.Rule) []rules.Rule {
		return []rules.Rule{{Name: name, By: by, Limiter: r.tiers(name, policy)}}
	}
}

// sendAs asks for a code with a key, and with what else the body is to have.
func (r *rig) sendAs(key, email, rest string) reply {
	r.t.Helper()
	return r.do("POST", "/send-code", key, `{"email":`+quote(email)+rest+`}`)
}

// trait is what a rule counts by, with sends that are counted together and one that is not.
type trait struct {
	by        rules.By
	algorithm throttle.Algorithm // with room for two at once
	email     string             // of all of them; each its own, if empty
	rest      string             // of the bodies
	words     string
	other     [3]string // key, email and rest of a send that is counted apart

	subject, others string // in the body of an operator's call; the second is another's
}

func pairOf(t testing.TB, one, other rules.By) rules.By {
	t.Helper()
	pair, ok := rules.Pair(one, other)
	if !ok {
		t.Fatalf("%s and %s are no pair", one, other)
	}
	return pair
}

func traits(t testing.TB) []trait {
	const another, visitor = "another@example.com", `,"client_ip":"203.0.113.8"`
	hour := tier("hour", 2, 3_600_000)
	return []trait{
		{by: rules.ByMailbox, algorithm: must.Get(throttle.NewPolicy(hour))(t), email: "same@example.com", words: "this mailbox", other: [3]string{appKey, another}},
		{by: rules.ByClientIP, algorithm: must.Get(throttle.NewSlidingWindow(hour, 60))(t), words: "this visitor's address",
			other: [3]string{appKey, another, visitor}, subject: `"subject":"::ffff:203.0.113.7"`, others: `"subject":"203.0.113.8"`},
		{by: rules.ByAPIKey, algorithm: must.Get(throttle.NewFixedWindow(hour))(t), words: "this caller",
			other: [3]string{"another-key", another}, subject: `"subject":"shop"`, others: `"subject":"blog"`},
		{by: rules.ByDomain, algorithm: must.Get(throttle.NewTokenBucket(tier("hour", 1, 3_600_000), 2))(t), words: "this mailbox's domain",
			other: [3]string{appKey, "another@other.example"}, subject: `"subject":"Mail.Example.COM"`, others: `"subject":"other.example"`},
		{by: rules.ByPurpose, algorithm: must.Get(throttle.NewPolicy(hour))(t), words: "this purpose", rest: `,"purpose":"login"`,
			other: [3]string{appKey, another, `,"purpose":"sign-up"`}, subject: `"subject":"login"`, others: `"subject":"sign-up"`},
		{by: pairOf(t, rules.ByAPIKey, rules.ByMailbox), algorithm: must.Get(throttle.NewPolicy(hour))(t), email: "same@example.com", words: "this mailbox and this caller",
			other: [3]string{"another-key", "same@example.com"}, subject: `"subject":"Same+1@example.com shop"`, others: `"subject":"same@example.com blog"`},
		{by: pairOf(t, rules.ByClientIP, rules.ByDomain), algorithm: must.Get(throttle.NewFixedWindow(hour))(t), words: "this visitor's address and this mailbox's domain",
			other: [3]string{appKey, "another@other.example", `,"client_ip":"203.0.113.7"`}, subject: `"subject":"203.0.113.7 example.com"`, others: `"subject":"203.0.113.7 other.example"`},
		{by: rules.ByTemplate, algorithm: must.Get(throttle.NewLeakyBucket(tier("hour", 3_600_000, 3_600_000), 1))(t), words: "this template",
			other: [3]string{appKey, another, `,"template":"invite"`}, subject: `"subject":"code"`, others: `"subject":"invite"`},
		{by: rules.ByAll, algorithm: must.Get(throttle.NewPolicy(hour))(t), words: "this service"},
	}
}

// Each trait that a rule can count by: two sends pass, the third is refused in the rule's name and
// words, and another's is not. The refusal writes nothing to the disk, so it charges no other rule. An
// operator sees it and resets it.
func TestRule_EachTrait_RefusesAndIsReset(t *testing.T) {
	t.Parallel()
	for _, by := range rules.Bys() {
		if !slices.ContainsFunc(traits(t), func(tt trait) bool { return tt.by == by }) {
			t.Errorf("there is no case for the trait %s: what a caller sends may not reach its rules", by)
		}
	}
	for _, tt := range traits(t) {
		t.Run(string(tt.by), func(t *testing.T) {
			dir := t.TempDir()
			written := func() int64 { return must.Get(os.Stat(filepath.Join(dir, "history.db-wal")))(t).Size() }
			r := newRig(t, setup{
				policy: "day=100/24h", dir: dir,
				options: func(o *apitest.Options) { o.Live.Composer = composerWith(t, invitation) },
				rules: func(r *rig, own *rules.Rule) []rules.Rule {
					extra := rules.Rule{Name: "extra", By: tt.by, Limiter: r.counted("rule-extra", tt.algorithm)}
					return append(ruleForEach(r, own), extra)
				},
			})
			sends := 0
			send := func() reply {
				sends++
				return r.sendAs(appKey, cmp.Or(tt.email, fmt.Sprintf("user%d@example.com", sends)), `,"client_ip":"203.0.113.7"`+tt.rest)
			}
			send().is(t, 200, "")
			first := written()
			send().is(t, 200, "")
			before := written()
			got := send()
			if before == first || written() != before {
				t.Error("a refusal was written, or a send was not")
			}
			got.is(t, 429, "quota-exceeded")
			got.says(t, fields{"rule": "extra", "limit": "hour"})
			detail, _ := got.body["detail"].(string)
			if names := fmt.Sprint(got.body["violated-policies"]); !strings.HasPrefix(detail, "The hour limit of "+tt.words+" is reached. ") || names != "[extra.hour]" {
				t.Errorf("answered %s", got.text)
			}
			r.count(got.token()).says(t, fields{"rule": "extra", "limit": "hour", "wait_ms": got.body["wait_ms"]})
			if tt.other[0] != "" {
				r.sendAs(tt.other[0], tt.other[1], tt.other[2]).is(t, 200, "")
			}
			if tt.by != rules.ByMailbox { // which has a reset of its own
				tt.reset(t, r, got)
				send().is(t, 200, "")
				send().is(t, 200, "")
				got = send()
			}
			r.now.Add(int64(got.body["wait_ms"].(float64)) - 1)
			send().is(t, 429, "quota-exceeded")
			r.now.Add(1)
			send().is(t, 200, "")
		})
	}
}

// reset sees the refusal as an operator does and resets it, after a reset of another subject.
func (tt trait) reset(t testing.TB, r *rig, refused reply) {
	t.Helper()
	rule := func(verb, subject string) reply {
		got := r.do("POST", "/admin/rules/extra/"+verb, opsKey, "{"+subject+"}")
		got.is(t, 200, "")
		return got
	}
	if tt.others != "" {
		rule("reset", tt.others)
		rule("peek", tt.others).says(t, fields{"allowed": true, "rule": nil})
	}
	seen := rule("peek", tt.subject)
	seen.says(t, fields{"allowed": false, "rule": "extra", "limit": "hour", "wait_ms": refused.body["wait_ms"]})
	rule("reset", tt.subject).says(t, fields{"cleared": 2.0, "rule": "extra", "subject": seen.body["subject"]})
}

// A rule with tiers lists all of them in the headers, and of two rules that refuse the one with the
// longer wait is named.
func TestSend_TwoRulesRefuse_NamesTheLongerWait(t *testing.T) {
	r := newRig(t, setup{rules: also("callers", rules.ByAPIKey, "blink=1/1s,hour=1000/1h")})
	r.send("two@example.com").is(t, 200, "")
	got := r.send("two@example.com")
	got.is(t, 429, "quota-exceeded")
	got.says(t, fields{"rule": "mailbox", "wait_ms": 60000.0})
	if names := fmt.Sprint(got.body["violated-policies"]); names != "[minute callers.blink]" {
		t.Errorf("violated: %s", names)
	}
	got.carries(t, map[string]string{
		"RateLimit-Policy": `"minute";q=1;w=60, "hour";q=5;w=3600, "day";q=10;w=86400, "callers.blink";q=1;w=1, "callers.hour";q=1000;w=3600`,
		"RateLimit":        `"minute";r=0;t=60, "hour";r=4;t=3600, "day";r=9;t=86400, "callers.blink";r=0;t=1, "callers.hour";r=999;t=3600`,
		"Retry-After":      "60",
	})
	r.now.Add(500)
	r.send("another@example.com").says(t, fields{"rule": "callers", "limit": "blink", "wait_ms": 500.0})
	r.has(t, `mailgate_sends_total{door="http",limit="minute",outcome="quota-exceeded",rule="mailbox"} 1`, `mailgate_sends_total{door="http",limit="blink",outcome="quota-exceeded",rule="callers"} 1`)
}

// A send and a lookup tell the longest wait until the next send, of any rule. Another caller's lookup
// and an operator's have no wait of this caller.
func TestLookup_CallersRule_TellsTheCallerOnly(t *testing.T) {
	r := newRig(t, setup{rules: also("callers", rules.ByAPIKey, "day=1/12h")})
	for _, got := range []reply{r.send("one@example.com"), r.do("GET", "/mailboxes/one@example.com", appKey, "")} {
		got.is(t, 200, "")
		got.says(t, fields{"rule": "callers", "limit": "day", "wait_ms": 43_200_000.0, "retry_at": "2026-11-21T00:00:00.000Z"})
	}
	r.do("GET", "/mailboxes/two@example.com", "another-key", "").says(t, fields{"rule": nil, "limit": nil})
	r.do("GET", "/admin/mailboxes/one@example.com", opsKey, "").says(t, fields{"rule": "mailbox"})
}

// An exempt mailbox has no limits of its own, and other rules apply.
func TestSend_ExemptMailbox_HasNoLimits(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, own *rules.Rule) []rules.Rule {
		own.Cases = []rules.Case{{Some: rules.Some{rules.ByMailbox: rules.Names("e2e-*@example.com")}}}
		return also("visitors", rules.ByClientIP, "hour=1/1h")(r, own)
	}})
	for _, got := range []reply{r.send("e2e-1@example.com"), r.send("e2e-1@example.com"), r.do("GET", "/mailboxes/e2e-1@example.com", appKey, "")} {
		got.is(t, 200, "")
		got.says(t, fields{"rule": nil, "limit": nil, "wait_ms": 0.0, "server_time": "2026-11-20T12:00:00.000Z"})
		if limits := got.body["limits"].([]any); len(limits) != 0 {
			t.Errorf("it has the limits %v", limits)
		}
		got.carries(t, map[string]string{"RateLimit": "", "RateLimit-Policy": ""})
	}
	const visitor = `,"client_ip":"203.0.113.7"`
	r.sendAs(appKey, "e2e-1@example.com", visitor).is(t, 200, "")
	got := r.sendAs(appKey, "e2e-2@example.com", visitor)
	got.is(t, 429, "quota-exceeded")
	got.carries(t, map[string]string{"RateLimit": `"visitors.hour";r=0;t=3600`, "RateLimit-Policy": `"visitors.hour";q=1;w=3600`})
}

// A shadow rule counts and is logged, and refuses nothing; one that fails is logged as well.
func TestSend_ShadowRule_IsLogged(t *testing.T) {
	f := &throttletest.Faulty{}
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		return []rules.Rule{{Name: "trial", By: rules.ByAll, Limiter: f.Break(r.tiers("s", "hour=1/1h")), Shadow: true}}
	}})
	r.send("a@example.com").is(t, 200, "")
	got := r.send("b@example.com")
	got.is(t, 200, "")
	got.says(t, fields{"rule": "mailbox"})
	lines := got.logged(t, fields{"rule": "trial", "limit": "hour", "wait_ms": 3_600_000.0}, fields{"mailbox": something})
	if lines[0]["mailbox"] != lines[1]["mailbox"] {
		t.Errorf("the log says %v", lines)
	}
	r.has(t, `mailgate_shadow_refusals_total{door="http",limit="hour",rule="trial"} 1`)
	f.Fail("take", "peek")
	got = r.send("c@example.com")
	got.is(t, 200, "")
	got.logged(t, fields{"level": "WARN", "cause": something}, fields{})
}

// Subdomains are counted with the domain that was registered. Exempt domains are as they are written.
func TestSend_Subdomains_AreOneDomain(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		exempt := rules.Some{rules.ByMailbox: rules.Names("@qa.wilder.example")}
		return []rules.Rule{{Name: "domains", By: rules.ByDomain, Limiter: r.tiers("domains", "minute=3/1m"), Cases: []rules.Case{{Some: exempt}}}}
	}})
	for i := range 3 {
		r.send(fmt.Sprintf("m@s%d.wilder.example", i)).is(t, 200, "")
	}
	for _, email := range []string{"m@s5.wilder.example", "m@a.b.c.wilder.example", "m@wilder.example", "m@S6.WILDER.example", "m@s.qa.wilder.example"} {
		if got := r.send(email); got.status != 429 || got.body["rule"] != "domains" {
			t.Errorf("%s: %s", email, got.text)
		}
	}
	if look := r.do("GET", "/mailboxes/m@s7.wilder.example", appKey, ""); look.body["rule"] != "domains" || look.body["wait_ms"] == 0.0 {
		t.Errorf("a lookup: %s", look.text)
	}
	for i := range 4 {
		r.send(fmt.Sprintf("m%d@qa.wilder.example", i)).is(t, 200, "")
		r.send(fmt.Sprintf("m@shop%d.co.uk", i)).is(t, 200, "")
	}
}

// A back end that passes its load balancer's address has all visitors counted as one. The first such
// send is logged, and no other.
func TestSend_AddressInside_IsLoggedOnce(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		exempt := rules.Some{rules.ByClientIP: rules.Names("10.1.0.0/16")}
		return []rules.Rule{{Name: "visitors", By: rules.ByClientIP, Limiter: r.tiers("visitors", "hour=9/1h"), Cases: []rules.Case{{Some: exempt}}}}
	}})
	for i, step := range []struct {
		client string
		logged bool
	}{
		{"203.0.113.7", false}, {"10.1.0.7", false}, {"::ffff:10.2.0.7", true}, {"10.2.0.7", false}, {"127.0.0.1", false},
	} {
		got := r.sendAs(appKey, fmt.Sprintf("inside%d@example.com", i), `,"client_ip":"`+step.client+`"`)
		got.is(t, 200, "")
		lines := journal.about(t, got.header.Get("X-Request-Id"))
		logged := len(lines) == 2 && lines[0]["level"] == "WARN" && lines[0]["key"] == "shop" && strings.HasPrefix(lines[0]["msg"].(string), "client_ip is an address inside a network")
		if logged != step.logged || len(lines) > 2 || strings.Contains(fmt.Sprint(lines), "10.2.0.7") {
			t.Errorf("%s: %v", step.client, lines)
		}
	}
}

// ruleForEach makes one for each trait, named by it.
func ruleForEach(r *rig, _ *rules.Rule) (all []rules.Rule) {
	for _, by := range rules.Bys() {
		name := strings.ReplaceAll(string(by), "_", "-") + "-rule"
		all = append(all, rules.Rule{Name: name, By: by, Limiter: r.tiers(name, "hour=20/1h")})
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
	name, _ := seen.logged(t, fields{"rule": "client-ip-rule", "route": "admin-rule-peek", "key": "alex"})[0]["subject"].(string)
	seen.reads(t, fmt.Sprintf(`{"allowed":true,"subject":%q,"cases":[],"rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z",`+
		`"limits":[{"name":"hour","limit":20,"window_ms":3600000,"remaining":19,"wait_ms":0}],"degraded":false}`, name))
	seen.carries(t, map[string]string{"RateLimit": `"hour";r=19;t=3600`, "RateLimit-Policy": `"hour";q=20;w=3600`})
	got := r.do("POST", "/admin/rules/client-ip-rule/reset", opsKey, "{"+subject+`,"reason":"ticket 9"}`)
	got.reads(t, fmt.Sprintf(`{"rule":"client-ip-rule","subject":%q,"cleared":1,"cases":[]}`, name))
	got.logged(t, fields{"msg": "rule reset", "key": "alex", "reason": "ticket 9", "rule": "client-ip-rule", "subject": name, "cleared": 1.0}, fields{})
	journal.private("2001:db8:1:2")
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
	r.do("POST", "/admin/rules/domain-rule/reset", opsKey, `{"subject":"example","reason":"`+strings.Repeat("x", 501)+`"}`).isInvalid(t, "reason:too-long subject:invalid")
	r.do("POST", "/admin/rules/all-rule/peek", opsKey, `{"reason":"none"}`).is(t, 400, "bad-request")
	r.do("POST", "/admin/rules/mailbox/reset", opsKey, `{"subject":"alice@example.com"}`).contains(t, "POST /admin/mailboxes/{email}/reset")
}

// Where no key is asked for all callers are one, which has a name.
func TestRule_NoKeys_CallerHasAName(t *testing.T) {
	r := newRig(t, setup{options: keyless, rules: ruleForEach})
	r.do("POST", "/send-code", "", `{"email":"nokey@example.com"}`).is(t, 200, "")
	r.do("POST", "/admin/rules/api-key-rule/reset", "", `{"subject":"local"}`).says(t, fields{"cleared": 1.0})
}

// A reason has at most 500 characters, on every reset.
func TestReset_LongReason_Refused(t *testing.T) {
	r := newRig(t, setup{rules: ruleForEach, actions: twoActions})
	for path, subject := range map[string]string{"/admin/rules/all-rule/reset": "", "/admin/actions/reply/reset": `"subject":"x",`, "/admin/mailboxes/a@example.com/reset": ""} {
		r.do("POST", path, opsKey, `{`+subject+`"reason":"`+strings.Repeat("口", 500)+`"}`).is(t, 200, "")
		r.do("POST", path, opsKey, `{`+subject+`"reason":"`+strings.Repeat("x", 501)+`"}`).is(t, 422, "invalid")
	}
}

// Mailboxes that one rule refuses together come back at different seconds, each at its own and none
// before its wait is over. All are told the same wait.
func TestRule_RefusesMany_SpreadsRetryAfter(t *testing.T) {
	r := newRig(t, setup{rules: also("all", rules.ByAll, "day=1/24h")})
	r.send("first@example.com").is(t, 200, "")
	later := map[string]bool{}
	for i := range 20 {
		email := fmt.Sprintf("next%d@example.com", i)
		got := r.send(email)
		got.says(t, fields{"rule": "all", "wait_ms": 86_400_000.0, "retry_at": "2026-11-21T12:00:00.000Z"})
		after := got.header.Get("Retry-After")
		if seconds := must.Get(strconv.Atoi(after))(t); seconds < 86_400 || seconds > 86_400*103/100 {
			t.Errorf("Retry-After is %d", seconds)
		}
		r.send(email).carries(t, map[string]string{"Retry-After": after})
		later[after] = true
	}
	if len(later) < 15 {
		t.Errorf("20 mailboxes come back at %d times", len(later))
	}
	r.send("first@example.com").carries(t, map[string]string{"RateLimit": `"minute";r=0;t=60, "hour";r=4;t=3600, "day";r=9;t=86400, "all.day";r=0;t=86400`})
}
