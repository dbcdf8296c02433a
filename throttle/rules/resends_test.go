package rules_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/throttle/rules"
)

// Resends leave the rest of a quota to first mails. A refused one waits no longer than until
// its mailbox is forgotten, which makes it a first mail; the mail before already tells this.
func TestTake_Resends_LeaveTheRestToFirstMails(t *testing.T) {
	for _, remote := range both {
		r := newRig(t)
		quota := r.quota("quota", 4, 2)
		set := r.set(remote, quota, r.mailbox("minute=3/60s"))
		for _, step := range []struct {
			mailbox string
			at      int64
			allowed bool
			wait    int64
		}{
			{"a", 0, true, 0},
			{"a", 10_000, true, 60_000}, // a resend, while there is enough
			{"a", 20_000, false, 50_000},
			{"b", 20_000, true, 60_000},
			{"b", 30_000, false, 50_000},
			{"a", 69_999, false, 1},
			{"a", 70_000, true, 86_330_000}, // the quota is used up
			{"c", 90_000, false, 86_310_000},
		} {
			r.clock.Store(start + step.at)
			send := to(step.mailbox + "@b.example")
			d := take(t, set, send)
			if d.Allowed != step.allowed || d.Verdict.Allowed != d.Allowed || d.Verdict.Wait != step.wait || (d.Rule == "quota") != (step.wait > 0) {
				t.Errorf("%s at %d: %v, %v, %d ms by %q, want %v, %d", step.mailbox, step.at, d.Allowed, d.Verdict.Allowed, d.Verdict.Wait, d.Rule, step.allowed, step.wait)
			}
			if p := peek(t, set, send); p.Verdict.RetryAt != d.Verdict.RetryAt || p.Rule != d.Rule {
				t.Errorf("%s at %d: then Peek tells %d by %s", step.mailbox, step.at, p.Verdict.Wait, p.Rule)
			}
		}
		quota.Shadow = true
		if d := take(t, r.set(remote, r.mailbox("minute=3/60s"), quota), to("d@b.example")); !d.Allowed || d.Rule != "" || len(d.Shadow) != 1 {
			t.Errorf("with the quota in shadow: %+v", d)
		}
	}
}

// One millisecond before the wait is over the answer is a refusal, and then an admission.
func TestTake_AnyResends_WaitIsExact(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		r, server := newRig(t), newRig(t)
		ahead := []int64{0, 5000, -5000}[seed%3] // the clock of the server that has the quota
		set := r.set(seed%2 == 0, r.mailbox([]string{"minute=2/60s", "minute=1/60s,quarter=3/15m"}[random.IntN(2)]),
			server.quota("quota", 8+random.IntN(8), 1+random.IntN(7)), r.exact("domain", rules.ByDomain, "minute=6/3m"))
		at := func(ms int64) { r.clock.Store(ms); server.clock.Store(ms + ahead) }
		for i, now := 0, start; i < 300; i, now = i+1, now+random.Int64N(900_000) {
			at(now)
			send := to(fmt.Sprintf("m%d@b.example", random.IntN(5)))
			d := take(t, set, send)
			wait := d.Verdict.RetryAt - d.Verdict.Now
			at(now + wait - 1)
			early := wait > 0 && peek(t, set, send).Allowed
			at(now + wait)
			if then := peek(t, set, send); early || !then.Allowed {
				t.Fatalf("seed %d, send %d: %v, %d ms by %s; early %v, then %v by %s", seed, i, d.Allowed, wait, d.Rule, early, then.Allowed, then.Rule)
			}
		}
	}
}

// What is kept for first mails is only for those that are certainly first.
func TestTake_NotCertainlyFirst_IsAResend(t *testing.T) {
	for name, change := range map[string]func(*rules.Rule){
		"exempt": func(m *rules.Rule) {
			m.Cases = []rules.Case{{Some: rules.Some{rules.ByMailbox: rules.Names("@b.example")}}}
		},
		"peek fails": func(m *rules.Rule) { fault(&m.Limiter, "peek") },
	} {
		r := newRig(t)
		mailbox := r.mailbox("minute=1/60s")
		mailbox.Shadow = true
		change(&mailbox)
		set := r.set(false, mailbox, r.quota("quota", 3, 2))
		for i, send := range []rules.Send{to("a@b.example"), to("c@b.example"), to("d@b.example")} {
			if d := take(t, set, send); d.Allowed != (i < 2) {
				t.Errorf("%s: send %d: %v by %s", name, i, d.Allowed, d.Rule)
			}
		}
	}
}

// Remote quotas are looked at once, at the same time, also about a resend.
func TestTake_RemoteResends_AreAskedAtOnce(t *testing.T) {
	r := newRig(t)
	one, two := r.quota("one", 40, 20), r.quota("two", 40, 20)
	first, other := fault(&one.Limiter), fault(&two.Limiter)
	set := r.set(true, r.mailbox("minute=30/60s"), one, two)
	for i, ask := range []func(testing.TB, *rules.Set, rules.Send) rules.Decision{take, take, peek} {
		meeting, met := make(chan struct{}), atomic.Int64{}
		meet := func(_ context.Context, event, _ string) error {
			if event == "peek" {
				select { // each waits for the other
				case meeting <- struct{}{}:
				case <-meeting:
				}
				met.Add(1)
			}
			return nil
		}
		first.On(meet)
		other.On(meet)
		if d := ask(t, set, to("a@b.example")); !d.Allowed || met.Load() != 2 {
			t.Errorf("call %d: refused by %q, asked %d times", i, d.Rule, met.Load())
		}
	}
}
