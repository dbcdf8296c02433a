package rules_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

func TestNew_WrongRules_SaysWhy(t *testing.T) {
	r := newRig(t)
	mailbox, quota := r.mailbox("hour=5/1h"), r.quota("quota", 5, 4)
	changed := func(change func(*rules.Rule)) rules.Rule { m := mailbox; change(&m); return m }
	const wrongMailbox = "rule mailbox: it counts by mailbox, and keeps every send"
	for _, tt := range []struct {
		rules []rules.Rule
		want  string
	}{
		{nil, "there is no rule mailbox"},
		{[]rules.Rule{mailbox, mailbox}, "rule mailbox: the name is used twice"},
		{[]rules.Rule{changed(func(m *rules.Rule) { m.By = rules.ByAll })}, wrongMailbox},
		{[]rules.Rule{changed(func(m *rules.Rule) { m.Exact = false })}, wrongMailbox},
		{[]rules.Rule{changed(func(m *rules.Rule) { m.Limiter = struct{ throttle.Limiter }{m.Limiter} })}, wrongMailbox},
		{[]rules.Rule{mailbox, {Name: "Other", By: rules.ByAll, Limiter: quota.Limiter}},
			`rule "Other": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{[]rules.Rule{mailbox, {Name: "other", By: "moon", Limiter: quota.Limiter}}, `rule other: nothing can be counted by "moon"`},
		{[]rules.Rule{mailbox, {Name: "other", By: rules.ByAll}}, "rule other: it has no limiter"},
	} {
		if _, err := rules.New(rules.Options{}, tt.rules...); err == nil || err.Error() != tt.want {
			t.Errorf("\n got %v\nwant %s", err, tt.want)
		}
	}
	for _, by := range rules.Bys() {
		newSet(t, false, mailbox, rules.Rule{Name: "other", By: by, Limiter: quota.Limiter})
	}
}

// Every trait to count by is once the one that refuses.
func TestTake_EachTraitRefuses_ChargesNoOther(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		for _, by := range rules.Bys() {
			r := newRig(t)
			mailbox, other := r.mailbox("minute=3/60s"), r.exact("other", by, "hour=2/1h")
			counter := fault(&mailbox.Limiter, nil)
			set := newSet(t, remote, mailbox, other)
			for i := range 2 {
				if d := take(t, set, to("a@b.example")); !d.Allowed {
					t.Fatalf("by %s: send %d was refused by %s", by, i, d.Rule)
				}
			}
			d := take(t, set, to("a@b.example"))
			if d.Allowed || d.Rule != "other" || d.By != by || d.Verdict.Limit != "hour" || d.Verdict.Wait != hour || len(d.Charges) != 0 {
				t.Errorf("by %s: %+v", by, d)
			}
			if n := counter.takes.Load(); n != 2 || d.Mailbox.Sent != 2 {
				t.Errorf("by %s: the mailbox rule was charged %d times and holds %d sends, want 2", by, n, d.Mailbox.Sent)
			}
		}
	})
}

func TestTake_UnknownTrait_IsNotCounted(t *testing.T) {
	r := newRig(t)
	set := newSet(t, false, r.mailbox("hour=9/1h"), r.exact("visitor", rules.ByClientIP, "hour=1/1h"), r.exact("caller", rules.ByAPIKey, "hour=9/1h"))
	unknown := to("a@b.example")
	unknown.Client = netip.Addr{}
	for range 3 {
		if d := take(t, set, unknown); !d.Allowed || len(d.Charges) != 2 {
			t.Fatalf("without an address: %+v", d)
		}
	}
	if set.CountsBy(rules.ByClientIP, unknown) || !set.CountsBy(rules.ByClientIP, to("a@b.example")) || set.CountsBy(rules.ByAll, unknown) {
		t.Error("CountsBy does not say which traits are counted")
	}
	if d := take(t, set, to("a@b.example")); !d.Allowed {
		t.Fatalf("the first with an address was refused by %s", d.Rule)
	}
	if d := take(t, set, to("c@d.example")); d.Allowed || d.Rule != "visitor" {
		t.Fatalf("the second with an address: %v by %s", d.Allowed, d.Rule)
	}
}

func TestTake_ClientAddresses_CountByVisitor(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		one           bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8:0:0:ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		r := newRig(t)
		set := newSet(t, false, r.mailbox("hour=9/1h"), r.exact("visitor", rules.ByClientIP, "hour=1/1h"))
		first, second := to("a@b.example"), to("c@b.example")
		first.Client, second.Client = netip.MustParseAddr(tt.first), netip.MustParseAddr(tt.second)
		take(t, set, first)
		if d := take(t, set, second); d.Allowed == tt.one {
			t.Errorf("%s and %s: second allowed %v", tt.first, tt.second, d.Allowed)
		}
	}
}

func TestTake_Exempt_IsNotCounted(t *testing.T) {
	mailboxes := func(all ...string) rules.Exempt { return rules.Exempt{Mailboxes: all} }
	networks := func(s string) rules.Exempt { return rules.Exempt{Networks: []netip.Prefix{netip.MustParsePrefix(s)}} }
	callers := func(all ...string) rules.Exempt { return rules.Exempt{Callers: all} }
	for _, tt := range []struct {
		exempt         rules.Exempt
		client, caller string
		want           bool
	}{
		{mailboxes(), "192.0.2.1", "web", false},
		{mailboxes("a@b.example"), "192.0.2.1", "web", true},
		{mailboxes("@b.example"), "192.0.2.1", "web", true},
		{mailboxes("*@b.example"), "192.0.2.1", "web", true},
		{mailboxes("a*@b.example", "x@y.example"), "192.0.2.1", "web", true},
		{mailboxes("?@b.example", "[a]@b.example", "a@b.exampl*"), "192.0.2.1", "web", false},
		{mailboxes("**a**@b.example"), "192.0.2.1", "web", true},
		{mailboxes("a*a@b.example", "*a*a*@b.example"), "192.0.2.1", "web", false},
		{mailboxes("*", "*@*", "@example", "b*@b.example", ""), "192.0.2.1", "web", false},
		{networks("192.0.2.0/24"), "192.0.2.1", "web", true},
		{networks("192.0.2.0/24"), "::ffff:192.0.2.1", "web", true},
		{networks("fe80::/10"), "fe80::1%eth0", "web", true},
		{networks("198.51.100.0/24"), "192.0.2.1", "web", false},
		{networks("::/0"), "192.0.2.1", "web", false},
		{callers("web"), "192.0.2.1", "web", true},
		{callers("batch", ""), "192.0.2.1", "web", false},
		{callers(""), "192.0.2.1", "", false},
	} {
		mailbox := newRig(t).mailbox("hour=1/1h")
		mailbox.Exempt = tt.exempt
		set, send := newSet(t, false, mailbox), to("a@b.example")
		send.Client, send.Caller = netip.MustParseAddr(tt.client), tt.caller
		take(t, set, send)
		if d := take(t, set, send); d.Allowed != tt.want || len(d.Charges) != 0 {
			t.Errorf("%+v, client %s, caller %q: the second send is %v, charged %v", tt.exempt, tt.client, tt.caller, d.Allowed, d.Charges)
		}
	}
}

// Of a refusal the rule that refuses longest is named, of an admission the one that the next
// send waits for.
func TestTake_SeveralRefuse_NamesTheLongestWait(t *testing.T) {
	r := newRig(t)
	set := newSet(t, false, r.mailbox("minute=1/60s"), r.exact("visitor", rules.ByClientIP, "hour=1/1h"), r.exact("provider", rules.ByAll, "second=1/1s"))
	for i, want := range []bool{true, false} {
		d := take(t, set, to("a@b.example"))
		if d.Allowed != want || d.Rule != "visitor" || d.By != rules.ByClientIP || d.Verdict.Wait != hour || len(d.Mailbox.Tiers) != 1 {
			t.Errorf("send %d: %+v", i, d)
		}
		if n := len(d.Refusals); n != 3*i {
			t.Errorf("send %d: %d rules refuse, want %d", i, n, 3*i)
		}
	}
}

// Where the mailbox rule makes nothing wait, the decision has only the clock.
func TestTake_NothingToWaitFor_NamesNoRule(t *testing.T) {
	r := newRig(t)
	shadow, exempt := r.mailbox("minute=1/60s"), r.mailbox("minute=1/60s")
	shadow.Shadow, exempt.Exempt.Mailboxes = true, []string{"@b.example"}
	for name, own := range map[string]rules.Rule{"shadow": shadow, "exempt": exempt} {
		d := take(t, newSet(t, false, own, r.exact("all", rules.ByAll, "day=9/24h")), to("a@b.example"))
		if !d.Allowed || d.Rule != "" || d.By != "" || d.Verdict.Limit != "" || d.Verdict.Wait != 0 || d.Verdict.Now != start || d.Verdict.RetryAt != start {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := take(t, newSet(t, false, exempt), to("a@b.example")); !d.Allowed || !d.Verdict.Allowed || d.Verdict.Now != 0 || len(d.Mailbox.Tiers) != 0 {
		t.Errorf("no rule applies: %+v", d)
	}
}

func TestPeek_ClocksDiffer_HasTheLatest(t *testing.T) {
	for _, ahead := range [][]int64{{0, 7}, {7, 0}} {
		r := newRig(t)
		all := []rules.Rule{r.mailbox("minute=9/60s")}
		for i, ms := range ahead {
			other := r.exact(fmt.Sprint("other", i), rules.ByDomain, "minute=9/60s")
			ahead := newRig(t)
			ahead.clock.Add(ms)
			other.Limiter = ahead.exact(other.Name, other.By, "minute=9/60s").Limiter
			all = append(all, other)
		}
		if d := peek(t, newSet(t, false, all...), to("a@b.example")); d.Verdict.Now != start+7 {
			t.Errorf("%v: %d", ahead, d.Verdict.Now-start)
		}
	}
}

// Under a clock that has stepped back the wait is counted as callers will see it.
func TestTake_ClockStepsBack_NamesTheLongestWait(t *testing.T) {
	r := newRig(t)
	set := newSet(t, false, r.exact("all", rules.ByAll, "minute=1/60s"), r.mailbox("minute=1/50s"))
	r.clock.Add(-20 * second)
	take(t, set, to("x@b.example"))
	r.clock.Store(start)
	if _, err := set.Mailbox().Take(ctx, "a@b.example", throttle.NewID()); err != nil {
		t.Fatal(err)
	}
	r.clock.Store(start - 15*second)
	// All have to wait 55 s, until start+40s; the mailbox 65 s, until start+50s, though its own
	// window is the shorter.
	if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != rules.MailboxRule || d.Verdict.RetryAt != start+50*second {
		t.Errorf("%s until %d", d.Rule, d.Verdict.RetryAt-start)
	}
}

func TestTake_Shadow_RefusesNothing(t *testing.T) {
	r := newRig(t)
	shadow := r.exact("trial", rules.ByAll, "hour=1/1h")
	shadow.Shadow = true
	set := newSet(t, false, r.mailbox("hour=2/1h"), shadow)
	for i := range 2 {
		if d := take(t, set, to("a@b.example")); !d.Allowed || len(d.Shadow) != i || len(d.Charges) != 2-i {
			t.Errorf("send %d: %+v", i, d)
		}
	}
	// Where another rule refuses as well, the shadow rule would make no difference.
	if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != rules.MailboxRule || len(d.Shadow) != 0 || len(d.Refusals) != 1 {
		t.Errorf("%+v", d)
	}
	if h, err := shadow.Limiter.(throttle.Historian).History(ctx, "all"); err != nil || len(h) != 1 {
		t.Errorf("the shadow rule counted %d sends, want the 1 within its limit; %v", len(h), err)
	}
}

// One degraded verdict makes the decision degraded, whichever rule is named.
func TestTake_DegradedRule_IsPassedOn(t *testing.T) {
	for _, degraded := range []string{rules.MailboxRule, "caller", "trial", ""} {
		r := newRig(t)
		all := []rules.Rule{r.mailbox("minute=1/60s"), r.exact("caller", rules.ByAPIKey, "hour=2/1h"), r.exact("trial", rules.ByAll, "hour=1/1h")}
		all[2].Shadow = true
		for i := range all {
			fault(&all[i].Limiter, nil).degraded = all[i].Name == degraded
		}
		set := newSet(t, false, all...)
		for _, mailbox := range []string{"a@b.example", "a@b.example", "c@b.example", "d@b.example"} {
			for what, d := range map[string]rules.Decision{"peek": peek(t, set, to(mailbox)), "take": take(t, set, to(mailbox))} {
				if want := degraded != ""; d.Degraded != want || d.Verdict.Degraded != want {
					t.Errorf("%s, degraded rule %q, allowed %v by %q: %v and %v", what, degraded, d.Allowed, d.Rule, d.Degraded, d.Verdict.Degraded)
				}
			}
		}
	}
}

// Many sends compete for quota that does not suffice: none is admitted beyond a limit, and
// what was charged in vain is given back.
func TestTake_Simultaneous_NeverExceedALimit(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		mailbox, all, day := r.mailbox("hour=5/1h"), r.exact("all", rules.ByAll, "hour=7/1h"), r.quota("day", 9, 9)
		set := newSet(t, remote, mailbox, all, day)
		boxes := []string{"a@b.example", "c@b.example", "d@b.example"}
		admitted := takeAtOnce(t, set, 64, func(i int) rules.Send { return to(boxes[i%3]) })
		total := 0
		for _, box := range boxes {
			total += 5 - left(t, mailbox, box)
		}
		if a, b := 7-left(t, all, "all"), 9-left(t, day, "all"); admitted > 7 || admitted == 0 || a != admitted || b != admitted || total != admitted {
			t.Errorf("%d admitted; %d and %d counted of all, %d by mailbox", admitted, a, b, total)
		}
	})
}

// What a Set is asked without a mailbox, or without rules, is never admitted.
func TestSet_NoMailboxOrNoRules_Fails(t *testing.T) {
	r := newRig(t)
	all := r.exact("all", rules.ByAll, "hour=1/1h")
	set := newSet(t, false, r.mailbox("hour=9/1h"), all)
	for _, tt := range []struct {
		set     *rules.Set
		mailbox string
		want    string
	}{
		{set, "", throttle.ErrKey.Error()},
		{set, strings.Repeat("m", throttle.MaxKey+1), throttle.ErrKey.Error()},
		{&rules.Set{}, "a@b.example", "the Set has no rules"},
		{nil, "a@b.example", "the Set has no rules"},
	} {
		send := rules.Send{Mailbox: tt.mailbox, Domain: "b.example", Client: visitor}
		taken, err1 := tt.set.Take(ctx, send, throttle.NewID())
		peeked, err2 := tt.set.Peek(ctx, send)
		_, err3 := tt.set.Reset(ctx, tt.mailbox)
		for _, err := range []error{err1, err2, err3} {
			if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("a mailbox of %d bytes: %v, want %s", len(tt.mailbox), err, tt.want)
			}
		}
		if taken.Allowed || peeked.Allowed {
			t.Errorf("a mailbox of %d bytes is admitted", len(tt.mailbox))
		}
	}
	if left(t, all, "all") != 1 {
		t.Error("the other rule was charged")
	}
}

func TestRule_Name_FindsIt(t *testing.T) {
	set := newSet(t, false, newRig(t).mailbox("hour=9/1h"))
	if r, found := set.Rule(rules.MailboxRule); !found || r.Limiter != throttle.Limiter(set.Mailbox()) {
		t.Errorf("%+v, %v", r, found)
	}
	if _, found := set.Rule("other"); found || slices.Contains(rules.Bys(), "") {
		t.Error("found a rule that is not there")
	}
}
