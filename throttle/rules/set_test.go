package rules_test

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

func TestNew_NoMailboxRule_Fails(t *testing.T) {
	r := newRig(t)
	byAll, counts := r.mailbox("hour=5/1h"), r.mailbox("hour=5/1h")
	byAll.By, counts.Limiter = rules.ByAll, r.quota("count", 5, 4).Limiter
	for _, all := range [][]rules.Rule{nil, {byAll}, {counts}, {r.quota("quota", 5, 4)}} {
		if set, err := rules.New(rules.Options{}, all...); set != nil || err == nil {
			t.Errorf("%d rules are accepted", len(all))
		}
	}
}

// Every trait to count by is once the one that refuses.
func TestTake_EachTraitRefuses_ChargesNoOther(t *testing.T) {
	for _, remote := range both {
		for _, by := range rules.Bys() {
			r := newRig(t)
			mailbox, other := r.mailbox("minute=3/60s"), r.exact("other", by, "hour=2/1h")
			set := r.set(remote, mailbox, other)
			for range 2 {
				take(t, set, to("a@b.example"))
			}
			d := take(t, set, to("a@b.example"))
			if d.Allowed || d.Rule != "other" || d.By != by || d.Verdict.Limit != "hour" || d.Verdict.Wait != 3_600_000 {
				t.Errorf("by %s: %+v", by, d)
			}
			if n := r.left(mailbox, "a@b.example"); n != 1 || d.Mailbox.Sent != 2 || len(d.Charges) != 0 {
				t.Errorf("by %s: the mailbox has %d left of 3, want 1; %+v", by, n, d)
			}
		}
	}
}

// A rule does not apply where its trait is unknown, and counts the addresses of one visitor
// as one.
func TestTake_ClientAddresses_CountByVisitor(t *testing.T) {
	for addresses, refused := range map[[2]string]bool{
		{"192.0.2.1", "192.0.2.1"}: true, {"192.0.2.1", "192.0.2.2"}: false, {"192.0.2.1", "::ffff:192.0.2.1"}: true,
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"}: true, {"2001:db8::1", "2001:db8:0:1::1"}: false,
		{"fe80::1%eth0", "fe80::2%eth1"}: true, {"192.0.2.1", ""}: false, {"", ""}: false,
	} {
		r := newRig(t)
		set := r.set(false, r.mailbox("hour=9/1h"), r.exact("visitor", rules.ByClientIP, "hour=1/1h"))
		var d rules.Decision
		for _, address := range addresses {
			send := to("a@b.example")
			send.Client, _ = netip.ParseAddr(address)
			d = take(t, set, send)
			if set.CountsBy(rules.ByClientIP, send) != (address != "") || set.CountsBy(rules.ByAll, send) {
				t.Errorf("CountsBy does not say what %q is counted by", address)
			}
		}
		if d.Allowed == refused {
			t.Errorf("%q: second allowed %v", addresses, d.Allowed)
		}
	}
}

func TestTake_ExemptAndOnly_CountTheRest(t *testing.T) {
	mailboxes := func(all ...string) rules.Some { return rules.Some{rules.ByMailbox: rules.Names(all...)} }
	networks := func(one, two string) rules.Some {
		return rules.Some{rules.ByClientIP: rules.Names(one, two)}
	}
	for exempt, all := range map[bool][]rules.Some{
		true: {
			mailboxes("a@b.example"), mailboxes("@b.example"), mailboxes("*@b.example"), mailboxes("x@y.example", "a*@b.example"),
			mailboxes("**a**@b.example"), networks("192.0.2.0/24", "fe80::/10"), {rules.ByAPIKey: rules.Names("web")},
			{rules.ByPurpose: rules.Names("sign-up", "login")}, {rules.ByTemplate: rules.Names("code"), rules.ByAPIKey: rules.Names("batch")},
		},
		false: {
			mailboxes(), mailboxes("?@b.example", "[a]@b.example", "a@b.exampl*", "", "*", "*@*", "@example"),
			mailboxes("a*a@b.example", "*a*a*@b.example", "b*@b.example"),
			networks("198.51.100.0/24", "::ffff:0:0/96"), {rules.ByAPIKey: rules.Names("batch", "")}, {rules.ByPurpose: rules.Names("sign-up", "")}, {rules.ByTemplate: rules.Names("invite")},
		},
	} {
		for _, e := range all {
			for client, caller := range map[string]string{"192.0.2.1": "web", "::ffff:192.0.2.1": "web", "fe80::1%eth0": "web", "192.0.2.9": ""} {
				if exempt && caller == "" {
					continue
				}
				r := newRig(t)
				mailbox, send := r.mailbox("hour=1/1h"), to("a@b.example")
				mailbox.Cases, send.Client, send.Caller = []rules.Case{{Some: e}}, netip.MustParseAddr(client), caller
				if d := take(t, r.set(false, mailbox), send); (len(d.Charges) == 0) != exempt {
					t.Errorf("%+v, client %s, caller %q: charged %v", e, client, caller, d.Charges)
				}
				r = newRig(t)
				counted := r.mailbox("hour=1/1h")
				counted.Only = e
				if d := take(t, r.set(false, counted), send); (len(d.Charges) == 1) != (exempt || e.None()) {
					t.Errorf("only %+v, client %s, caller %q: charged %v", e, client, caller, d.Charges)
				}
			}
		}
	}
}

// Of a refusal the rule that refuses longest is named, of an admission the one that the next
// send waits for.
func TestTake_SeveralRefuse_NamesTheLongestWait(t *testing.T) {
	r := newRig(t)
	set := r.set(false, r.mailbox("minute=1/60s"), r.exact("visitor", rules.ByClientIP, "hour=1/1h"), r.exact("all", rules.ByAll, "second=1/1s"))
	for i, want := range []bool{true, false} {
		d := take(t, set, to("a@b.example"))
		if d.Allowed != want || d.Rule != "visitor" || d.Verdict.Wait != 3_600_000 || len(d.Mailbox.Tiers) != 1 || len(d.Refusals) != 3*i {
			t.Errorf("send %d: %+v", i, d)
		}
		for _, refusal := range d.Refusals {
			if want := map[string]string{"mailbox": "a@b.example", "visitor": "192.0.2.1", "all": "all"}[refusal.Rule]; refusal.Key != want {
				t.Errorf("%s counts by %q, want %q", refusal.Rule, refusal.Key, want)
			}
		}
	}
}

// Where no rule makes the next send wait, the decision has only the latest clock.
func TestTake_NothingToWaitFor_NamesNoRule(t *testing.T) {
	r, ahead := newRig(t), newRig(t)
	ahead.clock.Add(7)
	shadow, exempt := r.mailbox("minute=1/60s"), r.mailbox("minute=1/60s")
	shadow.Shadow, exempt.Cases = true, []rules.Case{{Some: rules.Some{rules.ByMailbox: rules.Names("@b.example")}}}
	one, other := r.exact("one", rules.ByAll, "day=9/24h"), ahead.exact("other", rules.ByAll, "day=9/24h")
	for _, all := range [][]rules.Rule{{shadow, one, other}, {exempt, other, one}} {
		d := take(t, r.set(false, all...), to("a@b.example"))
		if !d.Allowed || !d.Verdict.Allowed || d.Rule != "" || d.By != "" || d.Verdict.Wait != 0 || d.Verdict.Now != start+7 || d.Verdict.RetryAt != start+7 {
			t.Errorf("%+v", d)
		}
	}
}

// Under a clock that has stepped back the wait is counted as callers will see it.
func TestTake_ClockStepsBack_NamesTheLongestWait(t *testing.T) {
	r := newRig(t)
	set := r.set(false, r.exact("all", rules.ByAll, "minute=1/60s"), r.mailbox("minute=1/50s"))
	r.clock.Add(-20_000)
	take(t, set, to("x@b.example"))
	r.clock.Store(start)
	must.Get(set.Mailbox(to("a@b.example")).Take(ctx, "a@b.example"))(t)
	r.clock.Store(start - 15_000)
	// All wait 55 s, until start+40 s; the mailbox 65 s, until start+50 s, though its window is
	// the shorter.
	if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != rules.MailboxRule || d.Verdict.RetryAt != start+50_000 {
		t.Errorf("%s until %d", d.Rule, d.Verdict.RetryAt-start)
	}
}

func TestTake_Shadow_RefusesNothing(t *testing.T) {
	r := newRig(t)
	shadow := r.exact("trial", rules.ByAll, "hour=1/1h")
	shadow.Shadow = true
	set := r.set(false, r.mailbox("hour=2/1h"), shadow)
	for i := range 2 {
		if d := take(t, set, to("a@b.example")); !d.Allowed || len(d.Shadow) != i || len(d.Charges) != 2-i {
			t.Errorf("send %d: %+v", i, d)
		}
	}
	// Where another rule refuses as well, the shadow rule would make no difference.
	if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != rules.MailboxRule || len(d.Shadow) != 0 || len(d.Refusals) != 1 {
		t.Errorf("%+v", d)
	}
	if h, err := shadow.Limiter.History(ctx, "all"); err != nil || len(h) != 1 {
		t.Errorf("the shadow rule counted %d sends, %v, want the 1 within its limit", len(h), err)
	}
}

// One degraded verdict makes the decision degraded, whichever rule is named.
func TestTake_DegradedRule_IsPassedOn(t *testing.T) {
	for _, degraded := range []string{rules.MailboxRule, "caller", "trial", "quota", ""} {
		r := newRig(t)
		all := []rules.Rule{r.mailbox("minute=1/60s"), r.exact("caller", rules.ByAPIKey, "hour=9/1h"), r.exact("trial", rules.ByAll, "hour=1/1h"), r.quota("quota", 2, 1)}
		all[2].Shadow = true
		for i := range all {
			fault(&all[i].Limiter).Degraded = all[i].Name == degraded
		}
		set := r.set(false, all...)
		for _, mailbox := range []string{"a@b.example", "a@b.example", "c@b.example", "c@b.example"} {
			if d := take(t, set, to(mailbox)); d.Degraded != (degraded != "") || d.Verdict.Degraded != d.Degraded {
				t.Errorf("degraded rule %q, allowed %v by %q: %v and %v", degraded, d.Allowed, d.Rule, d.Degraded, d.Verdict.Degraded)
			}
		}
	}
}

// Of many sends none is admitted beyond a limit, and what was charged in vain is refunded.
func TestTake_Simultaneous_NeverExceedALimit(t *testing.T) {
	for _, remote := range both {
		r := newRig(t)
		mailbox, all, day := r.mailbox("hour=5/1h"), r.exact("all", rules.ByAll, "hour=7/1h"), r.quota("day", 9, 9)
		set := r.set(remote, mailbox, all, day)
		var calls sync.WaitGroup
		var count atomic.Int64
		for i := range 64 {
			calls.Go(func() {
				if take(t, set, to([]string{"a@b.example", "c@b.example", "d@b.example"}[i%3])).Allowed {
					count.Add(1)
				}
			})
		}
		calls.Wait()
		admitted, sent := int(count.Load()), 15-r.left(mailbox, "a@b.example")-r.left(mailbox, "c@b.example")-r.left(mailbox, "d@b.example")
		if a, b := 7-r.left(all, "all"), 9-r.left(day, "all"); admitted > 7 || a != admitted || b != admitted || sent != admitted {
			t.Errorf("%d admitted; %d and %d counted of all, %d by mailbox", admitted, a, b, sent)
		}
	}
}

// Without a mailbox nothing is admitted.
func TestSet_NoMailbox_Fails(t *testing.T) {
	r := newRig(t)
	set := r.set(false, r.mailbox("hour=9/1h"), r.exact("all", rules.ByAll, "hour=1/1h"))
	for _, mailbox := range []string{"", strings.Repeat("m", 1024+1)} {
		taken, err1 := set.Take(ctx, to(mailbox), throttle.NewID())
		peeked, err2 := set.Peek(ctx, to(mailbox))
		_, err3 := set.Reset(ctx, mailbox)
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, throttle.ErrKey) || taken.Allowed || peeked.Allowed || len(taken.Charges) != 0 {
				t.Errorf("a mailbox of %d bytes: %v", len(mailbox), err)
			}
		}
	}
}
