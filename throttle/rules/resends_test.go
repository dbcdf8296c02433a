package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

func TestTake_Resends_LeaveTheRestToFirstMails(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		set := newSet(t, remote, r.quota("quota", 4, 2), r.mailbox("hour=9/1h"))
		for i, step := range []struct {
			mailbox string
			want    bool
		}{{"a", true}, {"a", true}, {"a", false}, {"c", true}, {"c", false}, {"d", true}, {"e", false}} {
			if d := take(t, set, to(step.mailbox+"@b.example")); d.Allowed != step.want || !d.Allowed && d.Rule != "quota" {
				t.Errorf("send %d to %s: %v by %s", i, step.mailbox, d.Allowed, d.Rule)
			}
		}
	})
}

// A refused resend waits no longer than until its mailbox is forgotten, which makes it a first
// mail. The first mail already tells this wait.
func TestTake_Resend_WaitsUntilItIsAFirstMail(t *testing.T) {
	r := newRig(t)
	quota := r.quota("quota", 3, 1)
	set := newSet(t, false, r.mailbox("minute=2/60s"), quota)
	for _, step := range []struct {
		mailbox string
		at      int64
		allowed bool
		wait    int64
	}{
		{"a", 0, true, 60_000},
		{"a", 10_000, false, 50_000},
		{"b", 20_000, true, 60_000},
		{"a", 59_999, false, 1},
		{"a", 60_000, true, 86_340_000}, // the quota is used up
		{"b", 90_000, false, 86_310_000},
	} {
		r.clock.Store(start + step.at)
		send := to(step.mailbox + "@b.example")
		d := take(t, set, send)
		if d.Allowed != step.allowed || d.Verdict.Allowed != d.Allowed || d.Verdict.Wait != step.wait || d.Rule != "quota" {
			t.Errorf("%s at %d: %v, %v, %d ms by %s, want %v, %d", step.mailbox, step.at, d.Allowed, d.Verdict.Allowed, d.Verdict.Wait, d.Rule, step.allowed, step.wait)
		}
		if p := peek(t, set, send); p.Verdict.RetryAt != d.Verdict.RetryAt || p.Rule != d.Rule {
			t.Errorf("%s at %d: then Peek tells %d by %s", step.mailbox, step.at, p.Verdict.Wait, p.Rule)
		}
	}
	quota.Shadow = true
	r.clock.Store(start + 2*hour)
	if d := take(t, newSet(t, false, r.mailbox("minute=2/60s"), quota), to("a@b.example")); !d.Allowed || d.Rule != "" || len(d.Shadow) != 1 {
		t.Errorf("with the quota in shadow: %+v", d)
	}
}

// One millisecond before the wait is over the answer is a refusal, and then an admission.
func TestTake_AnyResends_WaitIsExact(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		r, server := newRig(t), newRig(t)
		ahead := []int64{0, 5000, -5000}[seed%3] // the clock of the server that has the quota
		set := newSet(t, seed%2 == 0,
			r.mailbox([]string{"minute=2/60s", "minute=1/60s,quarter=3/15m"}[random.IntN(2)]),
			server.quota("quota", 8+random.IntN(8), 1+random.IntN(7)), r.exact("domain", rules.ByDomain, "minute=6/3m"))
		at := func(ms int64) { r.clock.Store(ms); server.clock.Store(ms + ahead) }
		var story []string
		for now := start; len(story) < 300; now += random.Int64N(hour / 4) {
			at(now)
			send := to(fmt.Sprintf("m%d@b.example", random.IntN(5)))
			d := take(t, set, send)
			wait := d.Verdict.RetryAt - d.Verdict.Now
			story = append(story, fmt.Sprintf("%d %s: %v, %d ms by %s", now-start, send.Mailbox, d.Allowed, wait, d.Rule))
			at(now + wait - 1)
			early := wait > 0 && peek(t, set, send).Allowed
			at(now + wait)
			if then := peek(t, set, send); early || !then.Allowed {
				t.Fatalf("seed %d: early %v, then %v by %s\n%s", seed, early, then.Allowed, then.Rule, story[max(0, len(story)-12):])
			}
		}
	}
}

// What is kept for first mails is only for those that are certainly first.
func TestTake_NotCertainlyFirst_IsAResend(t *testing.T) {
	for name, change := range map[string]func(*rules.Rule){
		"exempt":     func(m *rules.Rule) { m.Exempt.Mailboxes = []string{"@b.example"} },
		"peek fails": func(m *rules.Rule) { m.Shadow = true; fault(&m.Limiter, fails("peek")) },
		"take fails": func(m *rules.Rule) { m.Shadow = true; fault(&m.Limiter, fails("take")) },
		"contested":  func(m *rules.Rule) { m.Shadow = true; contest(&m.Limiter) },
	} {
		r := newRig(t)
		mailbox := r.mailbox("minute=1/60s")
		change(&mailbox)
		set := newSet(t, false, mailbox, r.quota("quota", 3, 2))
		for i, send := range []rules.Send{to("a@b.example"), to("c@b.example"), to("d@b.example")} {
			if d := take(t, set, send); d.Allowed != (i < 2) {
				t.Errorf("%s: send %d: %v by %s", name, i, d.Allowed, d.Rule)
			}
		}
	}
}

// A send that is no longer the first when it is charged waits as a resend.
func TestTake_AnotherIsFirst_WaitsAsResend(t *testing.T) {
	r := newRig(t)
	mailbox, quota := r.mailbox("minute=2/60s"), r.quota("quota", 3, 1)
	contest(&mailbox.Limiter)
	if _, err := quota.Limiter.Take(ctx, "all", throttle.NewID()); err != nil {
		t.Fatal(err)
	}
	d := take(t, newSet(t, false, mailbox, quota), to("a@b.example"))
	if d.Allowed || d.Rule != "quota" || d.Verdict.Wait != 60*second || d.Mailbox.Sent != 1 || left(t, quota, "all") != 2 {
		t.Errorf("%+v", d)
	}
}

func TestTake_SimultaneousToOneMailbox_OneIsFirst(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		set := newSet(t, remote, r.quota("quota", 40, 20), r.mailbox("minute=30/60s"))
		if n := takeAtOnce(t, set, 64, func(int) rules.Send { return to("a@b.example") }); n != 20 && n != 21 {
			t.Errorf("%d sent to one mailbox, want the 20 that may be resends, and perhaps the first beyond them", n)
		}
		for i := range 19 {
			if d := take(t, set, to(fmt.Sprintf("m%d@b.example", i))); !d.Allowed {
				t.Errorf("first mail %d was refused by %s", i, d.Rule)
			}
		}
	})
}

// Remote quotas are asked about a resend at once: by Take, after a first mail about the
// next, and by Peek.
func TestTake_RemoteResends_AreAskedAtOnce(t *testing.T) {
	r := newRig(t)
	one, two := r.quota("one", 40, 20), r.quota("two", 40, 20)
	first, other := fault(&one.Resends, nil), fault(&two.Resends, nil)
	set := newSet(t, true, r.mailbox("minute=30/60s"), one, two)
	for i, ask := range []func(testing.TB, *rules.Set, rules.Send) rules.Decision{take, take, peek} {
		first.hook = meet(2, "peek")
		other.hook = first.hook
		if d := ask(t, set, to("a@b.example")); !d.Allowed {
			t.Errorf("call %d: refused by %s", i, d.Rule)
		}
	}
}
