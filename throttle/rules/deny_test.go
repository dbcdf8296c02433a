package rules_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func denies(some rules.Some) rules.Options {
	return rules.Options{Denials: []rules.Case{{Name: "other", Some: rules.Some{rules.ByPurpose: rules.Names("spam")}}, {Name: "list", Some: some}}}
}

// A denial refuses whatever is in one of its lists, label by label, and charges nothing.
func TestTake_Denied_ByEachList(t *testing.T) {
	networks := func(all ...string) rules.Some { return rules.Some{rules.ByClientIP: rules.Names(all...)} }
	for want, all := range map[string][]rules.Some{
		"list": {
			{rules.ByDomain: rules.Names("b.example")}, {rules.ByDomain: rules.Names("x.example", "sub.b.example")}, {rules.ByDomain: rules.Names("deep.sub.b.example")}, {rules.ByMailbox: rules.Names("a@deep.sub.b.example")},
			{rules.ByMailbox: rules.Names("*a*@deep.sub.b.example")}, {rules.ByMailbox: rules.Names("@deep.sub.b.example")}, networks("192.0.2.0/24"), networks("192.0.0.0/8", "192.0.2.1/32"),
			{rules.ByAPIKey: rules.Names("web")}, {rules.ByTemplate: rules.Names("code")}, {rules.ByPurpose: rules.Names("login")},
		},
		"": {
			{}, {rules.ByDomain: rules.Names("ub.b.example", ".b.example", "other.deep.sub.b.example", "", "@deep.sub.b.example")}, {rules.ByMailbox: rules.Names("@b.example", "aa@deep.sub.b.example")},
			networks("192.0.3.0/24", "::/1"), {rules.ByAPIKey: rules.Names("we")},
		},
	} {
		for _, some := range all {
			r := newRig(t)
			set := must.Get(rules.New(denies(some), r.mailbox("hour=1/1h")))(t)
			if d := peek(t, set, to("a@deep.sub.b.example")); d.Denied != want || d.Allowed != (want == "") || len(d.Mailbox.Tiers) != 1 {
				t.Errorf("%+v: a look says %+v", some, d)
			}
			if d := take(t, set, to("a@deep.sub.b.example")); d.Denied != want || d.Allowed != (want == "") || len(d.Charges) != 1 == (want == "") {
				t.Errorf("%+v: %+v", some, d)
			}
		}
	}
}

// A shadow denial reports what it would have refused.
func TestTake_ShadowDenial_Reports(t *testing.T) {
	r := newRig(t)
	o := denies(rules.Some{rules.ByAPIKey: rules.Names("web")})
	o.Denials[1].Shadow = true
	visitor := r.exact("visitor", rules.ByClientIP, "hour=9/1h")
	visitor.Cases = []rules.Case{{Some: rules.Some{rules.ByClientIP: rules.Names("192.0.2.0/24")}, Limit: throttletest.Policy(t, "hour=1/1h"), Shadow: true}}
	set := must.Get(rules.New(o, r.mailbox("hour=1/1h"), visitor))(t)
	for i, want := range []string{"denied", "hour"} { // a shadow case counts what its rule admits
		d := take(t, set, to(fmt.Sprintf("a%d@b.example", i)))
		if !d.Allowed || d.Denied != "" || len(d.Shadow) != i+1 || d.Shadow[i].Rule != "list" || d.Shadow[i].Verdict.Limit != "denied" || d.Shadow[0].Verdict.Limit != want && i == 0 {
			t.Errorf("%+v", d)
		}
		if i == 1 && (d.Shadow[0].Rule != "visitor" || d.Shadow[0].Verdict.Limit != want || len(d.Charges) != 2) {
			t.Errorf("%+v", d)
		}
	}
}

// An override has its own limit, on the records of the rule. Of it and what is exempt the most exact name decides.
func TestTake_Override_NarrowestDecides(t *testing.T) {
	r := newRig(t)
	mailbox := r.mailbox("hour=2/1h")
	override := func(limit string, some rules.Some) {
		mailbox.Cases = append(mailbox.Cases, rules.Case{Some: some, Limit: throttletest.Policy(t, limit)})
	}
	override("hour=3/1h", rules.Some{rules.ByDomain: rules.Names("b.example")})
	override("hour=1/1h", rules.Some{rules.ByDomain: rules.Names("sub.b.example")})
	override("hour=4/1h", rules.Some{rules.ByMailbox: rules.Names("*x@sub.b.example")})
	override("hour=5/1h", rules.Some{rules.ByMailbox: rules.Names("vip@sub.b.example")})
	mailbox.Cases = append(mailbox.Cases, rules.Case{Some: rules.Some{rules.ByMailbox: rules.Names("gone@b.example"), rules.ByDomain: rules.Names("free.sub.b.example"), rules.ByAPIKey: rules.Names("web")}})
	set := r.set(false, mailbox)
	for email, limit := range map[string]int{"a@b.example": 3, "a@x.b.example": 3, "a@sub.b.example": 1, "a@x.sub.b.example": 1, "ax@sub.b.example": 4, "vip@sub.b.example": 5} {
		for n := range limit + 1 {
			d := take(t, set, to(email))
			if d.Allowed != (n < limit) || d.Mailbox.Tiers[0].Limit != limit {
				t.Errorf("%s, send %d: %+v", email, n, d)
			}
			if n == 0 { // a refund is by the limit that charged
				if failed, err := set.Release(ctx, d.Charges); err != nil || len(failed) > 0 || !take(t, set, to(email)).Allowed {
					t.Errorf("%s: the refund failed: %v, %v", email, failed, err)
				}
			}
		}
	}
	for _, email := range []string{"gone@b.example", "a@free.sub.b.example", "other@d.example"} { // of the caller web
		if d := take(t, set, to(email)); !d.Allowed || len(d.Charges) != 0 || len(d.Mailbox.Tiers) != 0 {
			t.Errorf("exempt %s: %+v", email, d)
		}
	}
}

// Of the overrides of a rule by two traits, one decides, wherever it is written: that of the mailbox first, of the purpose last.
func TestPeek_TwoTraitsOverridden_OneOrder(t *testing.T) {
	send := to("a@b.example")
	order := []struct {
		by   rules.By
		some rules.Some
	}{
		{rules.ByMailbox, rules.Some{rules.ByMailbox: rules.Names(send.Mailbox)}}, {rules.ByDomain, rules.Some{rules.ByDomain: rules.Names("b.example")}},
		{rules.ByClientIP, rules.Some{rules.ByClientIP: rules.Names("192.0.2.0/24")}}, {rules.ByAPIKey, rules.Some{rules.ByAPIKey: rules.Names(send.Caller)}},
		{rules.ByTemplate, rules.Some{rules.ByTemplate: rules.Names(send.Template)}}, {rules.ByPurpose, rules.Some{rules.ByPurpose: rules.Names(send.Purpose)}},
	}
	for i, first := range order {
		for _, other := range order[i+1:] {
			r := newRig(t)
			by, _ := rules.Pair(first.by, other.by)
			rule := r.exact("pair", by, "hour=2/1h")
			rule.Cases = []rules.Case{{Some: other.some, Limit: throttletest.Policy(t, "hour=3/1h")}, {Some: first.some, Limit: throttletest.Policy(t, "hour=4/1h")}}
			rule, _ = r.set(false, r.mailbox("hour=9/1h"), rule).Rule("pair")
			if v := must.Get(rule.Peek(ctx, send))(t); v.Tiers[0].Limit != 4 {
				t.Errorf("by %s: the limit is %d", by, v.Tiers[0].Limit)
			}
		}
	}
}

// One limit decides about each record, or a look at it and the memory of refusals would tell another than a send.
func TestNew_OverrideNotByTheKey_Refused(t *testing.T) {
	prefix := func(text string) rules.Some { return rules.Some{rules.ByClientIP: rules.Names(text)} }
	pair, _ := rules.Pair(rules.ByAPIKey, rules.ByMailbox)
	domains := func(all ...string) rules.Some { return rules.Some{rules.ByDomain: rules.Names(all...)} }
	for _, tt := range []struct {
		by   rules.By
		some rules.Some
		ok   bool
	}{
		{rules.ByMailbox, prefix("192.0.2.0/24"), false}, {rules.ByMailbox, rules.Some{rules.ByAPIKey: rules.Names("web")}, false}, {rules.ByClientIP, rules.Some{rules.ByMailbox: rules.Names("a@b.example")}, false},
		{rules.ByAll, domains("b.example"), false}, {rules.ByDomain, domains("sub.b.example"), false}, {rules.ByDomain, rules.Some{rules.ByMailbox: rules.Names("@b.example")}, false},
		{rules.ByClientIP, prefix("2001:db8::/65"), false}, {rules.ByTemplate, rules.Some{rules.ByPurpose: rules.Names("x")}, false},
		{rules.ByClientIP, prefix("2001:db8::/64"), true}, {rules.ByDomain, domains("b.example"), true}, {pair, domains("sub.b.example"), true}, {pair, rules.Some{rules.ByAPIKey: rules.Names("web")}, true},
		{rules.ByPurpose, rules.Some{rules.ByPurpose: rules.Names("x")}, true}, {rules.ByTemplate, rules.Some{rules.ByTemplate: rules.Names("x")}, true},
	} {
		r := newRig(t)
		rule := r.exact("other", tt.by, "hour=2/1h")
		rule.Cases = []rules.Case{{Some: tt.some, Limit: throttletest.Policy(t, "hour=1/1h")}}
		if _, err := rules.New(rules.Options{}, r.mailbox("hour=2/1h"), rule); (err == nil) != tt.ok {
			t.Errorf("by %s, %+v: %v", tt.by, tt.some, err)
		}
	}
}

// What a node remembers of keys with an override is what Redis would answer: two nodes that remember, and one that
// always asks, agree on every send.
func TestTake_OverridesFromMemory_AsRedisAnswers(t *testing.T) {
	t.Parallel()
	addr := redistest.Alone(t).Addr
	node := func(remembers bool) (*rules.Set, *cluster.Memory) {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		limiter, memory := must.Get(cluster.New(client, "test:mailbox", throttletest.Policy(t, "blink=2/200ms,hour=20/1h")))(t), cluster.NewMemory(1<<20)
		if remembers {
			limiter = memory.Limiter(limiter)
		}
		rule := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter, Cases: []rules.Case{
			{Some: rules.Some{rules.ByDomain: rules.Names("loose.example")}, Limit: throttletest.Policy(t, "blink=5/100ms,hour=30/1h")},
			{Some: rules.Some{rules.ByMailbox: rules.Names("a@strict.example")}, Limit: throttletest.Policy(t, "hour=1/1h")},
		}}
		return must.Get(rules.New(rules.Options{Remote: true}, rule))(t), memory
	}
	one, first := node(true)
	two, second := node(true)
	asks, _ := node(false)
	refused, limits := map[string]bool{}, map[string]int{"a@loose.example": 5, "b@strict.example": 2, "a@strict.example": 1}
	servertest.Eventually(t, "refusals from the memories of both", func() bool {
		for email, limit := range limits {
			for _, set := range []*rules.Set{one, two} {
				before := peek(t, asks, to(email))
				d := take(t, set, to(email))
				if d.Mailbox.Tiers[0].Limit != limit {
					t.Fatalf("%s is decided by %v", email, d.Mailbox.Tiers)
				}
				// Time passes between the two, so only a refusal that was over can be refused no more.
				if !d.Allowed && (before.Allowed || before.Verdict.RetryAt-d.Verdict.RetryAt > 1 || d.Verdict.RetryAt-before.Verdict.RetryAt > 1) {
					t.Fatalf("%s: refused until %d, by Redis %+v", email, d.Verdict.RetryAt, before.Verdict)
				}
				refused[email] = refused[email] || !d.Allowed
			}
		}
		return first.Refusals() > 20 && second.Refusals() > 20 && len(refused) == 3
	})
	for email := range limits {
		if !refused[email] {
			t.Errorf("%s was never refused", email)
		}
	}
}

// Long lists cost a decision little: compare the two.
func BenchmarkTake_Lists(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(b)
			mailbox, some := r.mailbox("day=1000/24h"), rules.Some{}
			for i := range n {
				some[rules.ByDomain] = append(some[rules.ByDomain], rules.Name{Text: fmt.Sprintf("disposable%d.example.com", i)})
			}
			for i := range n / 10 {
				one := rules.Some{rules.ByMailbox: rules.Names(fmt.Sprintf("user%d@b.example", i))}
				mailbox.Cases = append(mailbox.Cases, rules.Case{Some: one, Limit: throttletest.Policy(b, "day=1000/24h")})
			}
			set := must.Get(rules.New(denies(some), mailbox))(b)
			for i := 0; b.Loop(); i++ {
				must.Get(set.Take(ctx, to(fmt.Sprintf("user%d@mail.b.example", i)), throttle.NewID()))(b)
			}
		})
	}
}
