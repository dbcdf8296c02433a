package api_test

import (
	"errors"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const whatIf = "/admin/what-if"

// A trial replays the admitted sends of a day at their own times, under limits, denials and shadows, and charges nothing.
func TestWhatIf_SendsOfADay_CountedByRule(t *testing.T) {
	wrong := error(nil)
	r := newRig(t, setup{policy: "day=100/24h", options: func(o *apitest.Options) {
		o.TryRules = func(now func() int64, _ *throttle.Policy) (*rules.Set, func(), error) {
			own := must.Get(cache.Open(cache.Options{Now: now}))(t)
			rule := func(name string, by rules.By, tiers string) rules.Rule {
				return rules.Rule{Name: name, By: by, Limiter: local.New(own.Table(name), throttletest.Policy(t, tiers))}
			}
			shadow := rule("trial", rules.ByPurpose, "hour=1/1h")
			shadow.Shadow = true
			set := must.Get(rules.New(rules.Options{Denials: []rules.Case{{Name: "disposable", Some: rules.Some{rules.ByDomain: rules.Names("example.net")}}}},
				rule(rules.MailboxRule, rules.ByMailbox, "day=100/24h"), rule("visitor", rules.ByClientIP, "minute=2/60s"), shadow))(t)
			return set, func() { _ = own.Close() }, wrong
		}
	}})
	r.do("POST", whatIf, opsKey, "").says(t, fields{"sends": 0.0, "since": nil, "refused": 0.0})
	r.send("old@example.net").is(t, 200, "")
	r.now.Add(day)
	for _, one := range [][2]string{
		{"a@example.com", `,"client_ip":"203.0.113.7"`}, {"b@example.com", `,"client_ip":"203.0.113.7"`}, {"c@example.com", `,"client_ip":"203.0.113.7"`}, {"d@example.com", `,"client_ip":"203.0.113.7"`},
		{"a@example.com", `,"purpose":"login"`}, {"e@example.net", `,"purpose":"login"`}, {"e@example.com", `,"purpose":"login"`}, {"c@example.com", `,"client_ip":"203.0.113.8"`},
	} {
		r.sendAs(appKey, one[0], one[1]).is(t, 200, "")
	}
	r.now.Add(60_000)
	r.sendAs(appKey, "a@example.com", `,"client_ip":"203.0.113.7"`).is(t, 200, "")
	r.charged("a@example.com", 3)
	got := r.do("POST", whatIf, opsKey, "")
	got.is(t, 200, "")
	got.says(t, fields{"sends": 9.0, "refused": 3.0, "mailboxes": 3.0, "visitors": 1.0, "complete": true})
	got.contains(t, `"rules":[{"rule":"disposable","shadow":false,"refused":1},{"rule":"trial","shadow":true,"refused":1},{"rule":"visitor","shadow":false,"refused":2}]`)
	r.charged("a@example.com", 3)
	r.do("POST", whatIf, appKey, "").is(t, 401, "unauthorized")
	wrong = errors.New("rules.yaml:3: rule a: limit is missing")
	r.do("POST", whatIf, opsKey, "").isInvalid(t, "rules:invalid")
}

// A trial knows which codes were right: a budget is charged for the others only, and a caller's report is about its own sends.
func TestWhatIf_Budget_CountsWhatStayedUnverified(t *testing.T) {
	r := newRig(t, setup{policy: "day=100/24h", options: func(o *apitest.Options) {
		o.TryRules = func(now func() int64, _ *throttle.Policy) (*rules.Set, func(), error) {
			own := must.Get(cache.Open(cache.Options{Now: now}))(t)
			limiter := func(name, tiers string) *throttle.Limiter {
				return local.New(own.Table(name), throttletest.Policy(t, tiers))
			}
			set := must.Get(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter("mailbox", "day=100/24h")},
				rules.Rule{Name: "unproven", By: rules.ByAll, Limiter: limiter("unproven", "floor=2/24h"), Budget: &rules.Budget{}, Challenge: true}))(t)
			return set, func() { _ = own.Close() }, nil
		}
	}})
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		r.try(email, r.mailed(email)).is(t, 200, "")
	}
	for _, email := range []string{"d@example.com", "e@example.com"} {
		r.sendAs(appKey, email, `,"code":"482913"`).is(t, 200, "")
	}
	r.do("POST", "/verify-code", appKey, `{"email":"d@example.com","verified":true}`).is(t, 200, "")
	r.do("POST", whatIf, opsKey, "").says(t, fields{"sends": 5.0, "refused": 0.0})
	r.send("f@example.com").is(t, 200, "")
	r.send("g@example.com").is(t, 200, "")
	r.do("POST", whatIf, opsKey, "").says(t, fields{"sends": 7.0, "refused": 0.0, "challenged": 1.0, "mailboxes": 0.0})
}

// Other tiers are tried for mailboxes, and change nothing.
func TestWhatIf_OtherTiers_CountsRefusals(t *testing.T) {
	r := newRig(t, setup{})
	for range 3 {
		r.send("often@example.com").is(t, 200, "")
		r.now.Add(60_000)
	}
	r.send("once@example.com").is(t, 200, "")
	for tiers, refused := range map[string]float64{"minute=1/60s": 0, "day=3/24h, pause=1/60001ms": 1, "day=1/24h": 2} {
		r.do("POST", whatIf, opsKey, `{"tiers":`+quote(tiers)+`}`).says(t, fields{"sends": 4.0, "refused": refused, "mailboxes": min(1, refused), "complete": true})
	}
	r.do("POST", whatIf, opsKey, "").says(t, fields{"sends": 4.0, "refused": 0.0})
	r.charged("often@example.com", 3)
	for tiers, want := range map[string]string{
		"":                    "A policy needs at least one tier, such as minute=1/60s.",
		"hour=0/1h":           "Tier hour: the limit must be between 1 and 1000, not 0.",
		"hour=5/1h,hour=6/2h": "Tier hour: the name is used twice.",
		"<script>":            `Tier "<script>": write it as name=limit/window, such as minute=1/60s.`,
	} {
		got := r.do("POST", whatIf, opsKey, `{"tiers":`+quote(tiers)+`}`)
		got.is(t, 422, "invalid")
		if entry := got.body["errors"].([]any)[0].(map[string]any); entry["field"] != "tiers" || entry["detail"] != want {
			t.Errorf("%q: %v", tiers, entry)
		}
	}
}

func TestWhatIf_Simultaneous_OneAtATime(t *testing.T) {
	began, goOn := make(chan struct{}, 2), make(chan struct{})
	r := newRig(t, setup{options: func(o *apitest.Options) {
		try := o.TryRules
		o.TryRules = func(now func() int64, tiers *throttle.Policy) (*rules.Set, func(), error) {
			began <- struct{}{}
			<-goOn
			return try(now, tiers)
		}
	}})
	first := make(chan reply)
	go func() { first <- r.do("POST", whatIf, opsKey, "") }()
	<-began
	got := r.do("POST", whatIf, opsKey, `{"tiers":"hour=1/1h"}`)
	got.is(t, 409, "trial-in-progress")
	got.carries(t, map[string]string{"Retry-After": "1"})
	close(goOn)
	(<-first).is(t, 200, "")
	r.do("POST", whatIf, opsKey, "").is(t, 200, "")
}
