package api_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

func tier(name string, limit int, window int64) throttle.Tier {
	return throttle.Tier{Name: name, Limit: limit, Window: time.Duration(window) * time.Millisecond}
}

// An algorithm is a way to count: the name of its limit, and a limiter of a rule on a store.
type algorithm struct {
	limit string
	on    func(r *rig, store string) throttle.Limiter
}

// algorithms are every way to count, each with room for two sends at once and then one
// more after a while.
func algorithms(t testing.TB) map[string]algorithm {
	return map[string]algorithm{
		"sliding-log":    countedBy("hour", must(throttle.NewPolicy(tier("hour", 2, 3_600_000)))(t)),
		"fixed-window":   countedBy("hour", must(throttle.NewFixedWindow(tier("hour", 2, 3_600_000)))(t)),
		"sliding-window": countedBy("hour", must(throttle.NewSlidingWindow(tier("hour", 2, 3_600_000), 60))(t)),
		"token-bucket":   countedBy("hour", must(throttle.NewTokenBucket(tier("hour", 1, 3_600_000), 2))(t)),
		"leaky-bucket":   countedBy("pace", must(throttle.NewLeakyBucket(tier("pace", 1000, 1000), 1))(t)),
	}
}

func countedBy(limit string, a throttle.Algorithm) algorithm {
	return algorithm{limit, func(r *rig, store string) throttle.Limiter {
		if store == "memory" {
			return inMemory(a, r.now.Load)
		}
		return r.counted("rule-extra", a)
	}}
}

// sendAs asks for a code with a key, and with what else the body is to have.
func (r *rig) sendAs(key, email, rest string) reply {
	r.t.Helper()
	return r.do("POST", "/send-code", key, `{"email":`+quote(email)+rest+`}`)
}

// A trait is what a rule counts by, with sends that are counted together and one that is
// not.
type trait struct {
	by     rules.By
	email  string // of all of them; each its own, if empty
	rest   string
	words  string
	others *other // nobody is another, if nil
}

type other struct{ key, email, rest string }

func traits() []trait {
	const another = "somebody-else@example.com"
	return []trait{
		{by: rules.ByMailbox, email: "same@example.com", words: "this mailbox", others: &other{appKey, another, ""}},
		{by: rules.ByClientIP, rest: `,"client_ip":"203.0.113.7"`, words: "this visitor's address", others: &other{appKey, another, `,"client_ip":"203.0.113.8"`}},
		{by: rules.ByAPIKey, words: "this caller", others: &other{"another-key", another, ""}},
		{by: rules.ByDomain, words: "this mailbox's domain", others: &other{appKey, "somebody@other.example", ""}},
		{by: rules.ByTemplate, words: "this template", others: &other{appKey, another, `,"template":"invite"`}},
		{by: rules.ByAll, words: "this service"},
	}
}

// Every trait that a rule can count by and every way to count, end to end: two sends
// pass, the third is refused in the rule's name and words, and another's is not.
func TestRulesRefuse(t *testing.T) {
	counting := algorithms(t)
	for i, name := range slices.Sorted(maps.Keys(counting)) {
		for j, tt := range traits() {
			store, counted := []string{"memory", "disk"}[(i+j)%2], counting[name]
			t.Run(fmt.Sprint(tt.by, "/", name, "/", store), func(t *testing.T) {
				tt.refuses(newRig(t, setup{
					policy:  "day=100/24h",
					options: func(o *api.Options) { o.Live.Composer = composerWith(t, invitation) },
					rules: func(r *rig, _ *rules.Rule) []rules.Rule {
						return []rules.Rule{{Name: "extra", By: tt.by, Limiter: counted.on(r, store)}}
					},
				}), counted.limit)
			})
		}
	}
}

func (tt trait) refuses(r *rig, limit string) {
	t, sends := r.t, 0
	send := func() reply {
		sends++
		return r.sendAs(appKey, cmp.Or(tt.email, fmt.Sprintf("user%d@example.com", sends)), tt.rest)
	}
	send().is(t, 200, "")
	send().is(t, 200, "")
	got := send()
	tt.isRefused(t, got, limit)
	if tt.others != nil {
		r.sendAs(tt.others.key, tt.others.email, tt.others.rest).is(t, 200, "")
	}
	r.now.Add(int64(got.body["wait_ms"].(float64)) - 1)
	send().is(t, 429, "quota-exceeded")
	r.now.Add(1)
	send().is(t, 200, "")
}

// isRefused holds a refusal to the rule's name, its limit and the words for a person.
func (tt trait) isRefused(t testing.TB, got reply, limit string) {
	t.Helper()
	got.is(t, 429, "quota-exceeded")
	detail, _ := got.body["detail"].(string)
	if got.body["rule"] != "extra" || got.body["limit"] != limit || !strings.HasPrefix(detail, "The "+limit+" limit of "+tt.words+" is reached. ") {
		t.Errorf("answered %s", got.text)
	}
	if names := fmt.Sprint(got.body["violated-policies"]); names != "[extra."+limit+"]" {
		t.Errorf("violated: %v", names)
	}
	if limits := got.body["limits"].([]any); len(limits) != 1 || limits[0].(map[string]any)["name"] != "day" {
		t.Errorf("limits: %v", limits)
	}
	if header := got.header.Get("RateLimit"); !strings.HasPrefix(header, `"day";r=`) || !strings.Contains(header, `, "extra.`+limit+`";r=0;t=`) {
		t.Errorf("RateLimit: %s", header)
	}
}

// A rule with tiers lists all of them in the headers, and of two rules that refuse the
// one with the longer wait is named.
func TestTwoRulesRefuse(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		policy := must(throttle.ParsePolicy("blink=1/1s,hour=1000/1h"))(t)
		return []rules.Rule{{Name: "callers", By: rules.ByAPIKey, Limiter: r.counted("rule-callers", policy)}}
	}})
	r.send("two@example.com").is(t, 200, "")
	got := r.send("two@example.com")
	got.is(t, 429, "quota-exceeded")
	if names := fmt.Sprint(got.body["violated-policies"]); got.body["rule"] != "mailbox" || got.body["wait_ms"] != 60000.0 || names != "[minute callers.blink]" {
		t.Errorf("answered %s", got.text)
	}
	got.carries(t, map[string]string{
		"RateLimit-Policy": `"minute";q=1;w=60, "hour";q=5;w=3600, "day";q=10;w=86400, "callers.blink";q=1;w=1, "callers.hour";q=1000;w=3600`,
		"RateLimit":        `"minute";r=0;t=60, "hour";r=4;t=3600, "day";r=9;t=86400, "callers.blink";r=0;t=1, "callers.hour";r=999;t=3600`,
		"Retry-After":      "60",
	})
	r.now.Add(500)
	got = r.send("another@example.com")
	if got.body["rule"] != "callers" || got.body["limit"] != "blink" || got.body["wait_ms"] != 500.0 || fmt.Sprint(got.body["violated-policies"]) != "[callers.blink]" {
		t.Errorf("answered %s", got.text)
	}
	text := r.do("GET", "/metrics", "", "").text
	for _, want := range []string{`mailgate_sends_total{limit="minute",outcome="denied",rule="mailbox"} 1`, `mailgate_sends_total{limit="blink",outcome="denied",rule="callers"} 1`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// After a send the answer counts to the next, whichever rule makes it wait; a look says
// the same.
func TestTheLongestWaitIsTold(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		return []rules.Rule{{Name: "callers", By: rules.ByAPIKey, Limiter: r.counted("c", must(throttle.NewFixedWindow(tier("day", 1, 86_400_000)))(t))}}
	}})
	sent := r.send("one@example.com")
	looked := r.do("GET", "/mailboxes/one@example.com", appKey, "")
	for _, got := range []reply{sent, looked} {
		got.is(t, 200, "")
		if got.body["rule"] != "callers" || got.body["limit"] != "day" || got.body["wait_ms"] != 43_200_000.0 || got.body["retry_at"] != "2026-11-21T00:00:00.000Z" {
			t.Errorf("answered %s", got.text)
		}
	}
	// The other caller's look, and an operator's, are not this caller's.
	if got := r.do("GET", "/mailboxes/two@example.com", "another-key", ""); got.body["rule"] != nil || got.body["limit"] != nil {
		t.Errorf("the other caller is told %s", got.text)
	}
	if got := r.do("GET", "/admin/mailboxes/one@example.com", opsKey, ""); got.body["rule"] != "mailbox" {
		t.Errorf("an operator is told %s", got.text)
	}
}

// A mailbox that its own rule leaves alone has no limits, and other rules still apply.
func TestExemptMailbox(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, own *rules.Rule) []rules.Rule {
		own.Exempt.Mailboxes = []string{"e2e-*@example.com"}
		return []rules.Rule{{Name: "visitors", By: rules.ByClientIP, Limiter: r.counted("v", must(throttle.NewFixedWindow(tier("hour", 1, 3_600_000)))(t))}}
	}})
	for range 3 {
		got := r.send("e2e-1@example.com")
		got.is(t, 200, "")
		if got.body["rule"] != nil || got.body["limit"] != nil || got.body["wait_ms"] != 0.0 || len(got.body["limits"].([]any)) != 0 || got.body["server_time"] != "2026-11-20T12:00:00.000Z" {
			t.Errorf("answered %s", got.text)
		}
		got.carries(t, map[string]string{"RateLimit": "", "RateLimit-Policy": ""})
	}
	got := r.do("GET", "/mailboxes/e2e-1@example.com", appKey, "")
	got.is(t, 200, "")
	got.carries(t, map[string]string{"RateLimit": "", "RateLimit-Policy": ""})

	const visitor = `,"client_ip":"203.0.113.7"`
	r.sendAs(appKey, "e2e-1@example.com", visitor).is(t, 200, "")
	got = r.sendAs(appKey, "e2e-2@example.com", visitor)
	got.is(t, 429, "quota-exceeded")
	if got.body["rule"] != "visitors" || len(got.body["limits"].([]any)) != 0 {
		t.Errorf("answered %s", got.text)
	}
	got.carries(t, map[string]string{"RateLimit": `"visitors.hour";r=0;t=3600`, "RateLimit-Policy": `"visitors.hour";q=1;w=3600`})
	if r.used("e2e-1@example.com") != 0 {
		t.Error("an exempt mailbox was counted")
	}
}

// A rule in the shadow counts and is heard, and refuses nothing; one that cannot be
// asked is heard as well.
func TestShadow(t *testing.T) {
	f := &failing{}
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		f.Historian = r.counted("s", must(throttle.ParsePolicy("hour=1/1h"))(t))
		return []rules.Rule{{Name: "trial", By: rules.ByAll, Limiter: f, Shadow: true}}
	}})
	r.send("a@example.com").is(t, 200, "")
	got := r.send("b@example.com")
	got.is(t, 200, "")
	if got.body["rule"] != "mailbox" {
		t.Errorf("a rule in the shadow is named: %s", got.text)
	}
	lines := journal.about(t, got.header.Get("X-Request-Id"))
	if len(lines) != 2 || lines[0]["rule"] != "trial" || lines[0]["limit"] != "hour" || lines[0]["wait_ms"] != 3_600_000.0 || lines[0]["mailbox"] != lines[1]["mailbox"] {
		t.Errorf("the log says %v", lines)
	}
	if text := r.do("GET", "/metrics", "", "").text; !strings.Contains(text, `mailgate_shadow_refusals_total{limit="hour",rule="trial"} 1`+"\n") {
		t.Error("/metrics does not count it")
	}
	f.take.Store(true)
	f.rest.Store(true)
	got = r.send("c@example.com")
	got.is(t, 200, "")
	if lines := journal.about(t, got.header.Get("X-Request-Id")); len(lines) != 2 || lines[0]["level"] != "WARN" || lines[0]["cause"] == nil {
		t.Errorf("the log says %v", lines)
	}
}

// What never left is given back by all rules. But whoever is put off at RCPT was asked for at the
// relay: he counts for the visitor who named him.
func TestRelayFailureGivesRulesBack(t *testing.T) {
	by := map[string]rules.By{"visitors": rules.ByClientIP, "callers": rules.ByAPIKey, "domains": rules.ByDomain, "templates": rules.ByTemplate, "all": rules.ByAll}
	hour := must(throttle.NewSlidingWindow(tier("hour", 9, 3_600_000), 60))(t)
	for at, visitors := range map[fault.Step]int{fault.RCPT: 8, fault.Dot: 9} {
		limiters := map[string]throttle.Limiter{}
		r := newRig(t, setup{relay: &fault.Script{At: at, Kind: fault.Temporary}, rules: func(r *rig, _ *rules.Rule) (all []rules.Rule) {
			for name, by := range by {
				limiters[name] = r.counted(name, hour)
				all = append(all, rules.Rule{Name: name, By: by, Limiter: limiters[name]})
			}
			return all
		}})
		r.sendAs(appKey, "back@example.com", `,"client_ip":"2001:db8::7"`).is(t, 503, "relay-unavailable")
		for name, key := range map[string]string{"visitors": "2001:db8::/64", "callers": "shop", "domains": "example.com", "templates": "code", "all": "all"} {
			want := 9
			if name == "visitors" {
				want = visitors
			}
			if v := must(limiters[name].Peek(context.Background(), key))(t); v.Tiers[0].Remaining != want {
				t.Errorf("%v, %s: %v", at, name, v.Tiers)
			}
		}
		if r.used("back@example.com") != 0 {
			t.Errorf("%v: the mailbox was charged", at)
		}
	}
}

// A place that was lost to another in the last moment, and could not be given back at
// once, is given back later.
func TestOwedIsGivenBackLater(t *testing.T) {
	f := &failing{}
	r := newRig(t, setup{rules: func(r *rig, own *rules.Rule) []rules.Rule {
		f.Historian = r.limiter
		own.Limiter = f
		return []rules.Rule{{Name: "late", By: rules.ByAll, Limiter: lateNo{r.counted("late", throttle.DefaultPolicy())}}}
	}})
	f.release.Store(true)
	got := r.send("owed@example.com")
	got.is(t, 429, "quota-exceeded")
	if got.body["rule"] != "late" || r.used("owed@example.com") != 1 {
		t.Fatalf("%d on record, answered %s", r.used("owed@example.com"), got.text)
	}
	if limits := got.body["limits"].([]any); limits[0].(map[string]any)["remaining"] != 1.0 {
		t.Errorf("the mailbox's place counts in the answer: %s", got.text)
	}
	f.release.Store(false)
	servertest.Eventually(t, "the place is given back", func() bool { return r.used("owed@example.com") == 0 })
}

// A lateNo says yes when it is looked at, and no when it is to be charged.
type lateNo struct{ throttle.Historian }

func (l lateNo) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if _, err := l.Historian.Take(ctx, key, throttle.NewID()); err != nil {
		return throttle.Verdict{}, err
	}
	return l.Historian.Take(ctx, key, id)
}

// Subdomains are to be had in any number, and are counted with the domain that somebody
// registered; two that were registered below one suffix are apart. What is exempt is exempt
// as it was written.
func TestSubdomainsAreOneDomain(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		minute := must(throttle.NewSlidingWindow(tier("minute", 5, 60_000), 60))(r.t)
		return []rules.Rule{{
			Name: "domains", By: rules.ByDomain, Limiter: r.counted("domains", minute),
			Exempt: rules.Exempt{Mailboxes: []string{"@qa.wilder.example"}},
		}}
	}})
	for i := range 5 {
		r.send(fmt.Sprintf("m@s%d.wilder.example", i)).is(t, 200, "")
	}
	for _, email := range []string{"m@s5.wilder.example", "m@a.b.c.wilder.example", "m@wilder.example", "m@S6.WILDER.example"} {
		if got := r.send(email); got.status != 429 || got.body["rule"] != "domains" {
			t.Errorf("%s: %s", email, got.text)
		}
	}
	look := r.do("GET", "/mailboxes/m@s7.wilder.example", appKey, "")
	if look.body["rule"] != "domains" || look.body["wait_ms"] == 0.0 {
		t.Errorf("a look: %s", look.text)
	}
	for i := range 6 {
		r.send(fmt.Sprintf("m@s%d.qa.wilder.example", i)).is(t, 429, "quota-exceeded") // not what is exempt
		r.send(fmt.Sprintf("m%d@qa.wilder.example", i)).is(t, 200, "")
		r.send(fmt.Sprintf("m@shop%d.co.uk", i)).is(t, 200, "")
	}
}

// A back end that passes its load balancer's address has all visitors counted as one. That is
// said of the first such send that a rule counts so, and not again.
func TestAnAddressInsideIsToldOnce(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		visitors := rules.Rule{Name: "visitors", By: rules.ByClientIP, Limiter: r.counted("visitors", must(throttle.ParsePolicy("hour=9/1h"))(t))}
		visitors.Exempt.Networks = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		return []rules.Rule{visitors}
	}})
	for i, step := range []struct {
		client string
		told   bool
	}{
		{"203.0.113.7", false}, {"10.1.0.7", false}, {"::ffff:10.2.0.7", true}, {"10.2.0.7", false}, {"127.0.0.1", false},
	} {
		got := r.sendAs(appKey, fmt.Sprintf("inside%d@example.com", i), `,"client_ip":"`+step.client+`"`)
		got.is(t, 200, "")
		lines := journal.about(t, got.header.Get("X-Request-Id"))
		told := len(lines) == 2 && lines[0]["level"] == "WARN" && lines[0]["key"] == "shop" && strings.HasPrefix(lines[0]["msg"].(string), "client_ip is an address inside a network")
		if told != step.told || len(lines) > 2 {
			t.Errorf("%s: %v", step.client, lines)
		}
		if step.told && strings.Contains(fmt.Sprint(lines), "10.2.0.7") {
			t.Error("the log has the address")
		}
	}
}
