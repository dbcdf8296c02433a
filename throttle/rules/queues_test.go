package rules_test

import (
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Simultaneous sends of which few are admitted take few positions in the queue of all.
func TestTake_Simultaneous_RefusedTakeNoPosition(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		pace, domain := r.queue("pace", rules.ByAll, 14, 50), r.queue("domain", rules.ByDomain, 14, 3)
		fault(&domain.Limiter, meet(40, "peek", "take")) // all see room before any is charged
		set := newSet(t, remote, pace, domain, r.mailbox("minute=40/60s"))
		send := func(int) rules.Send { return to("a@b.example") }
		if n := takeAtOnce(t, set, 40, send); n != 4 || left(t, pace, "all") != 47 {
			t.Errorf("%d sent to one domain, %d of 51 positions left; want 4 and 47", n, left(t, pace, "all"))
		}
		set = newSet(t, remote, pace, r.exact(rules.MailboxRule, rules.ByMailbox, "hour=5/1h"))
		if n := takeAtOnce(t, set, 64, send); n != 1 || left(t, pace, "all") != 46 {
			t.Errorf("%d more sent to one mailbox, %d of 51 positions left; want 1 and 46", n, left(t, pace, "all"))
		}
	})
}

// A queue is charged when no narrower rule can refuse any more, in whichever order rules are
// written, and a shadow queue when none can.
func TestTake_RaceLost_ChargesNoWiderQueue(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		for _, tt := range []struct {
			order     []string
			contested string
		}{
			{[]string{"pace", "mailbox"}, "mailbox"},
			{[]string{"pace", "domain", "mailbox"}, "domain"},
			{[]string{"domain", "pace", "mailbox"}, "domain"},
			{[]string{"domain", "mailbox", "pace"}, "domain"},
			{[]string{"mailbox", "trial", "pace"}, "pace"},
		} {
			r := newRig(t)
			known := map[string]rules.Rule{"mailbox": r.mailbox("minute=1/60s"), "pace": r.queue("pace", rules.ByAll, 14, 0),
				"domain": r.queue("domain", rules.ByDomain, 14, 0), "trial": r.queue("trial", rules.ByDomain, 14, 0)}
			var all []rules.Rule
			var others []*faulty
			for _, name := range tt.order {
				rule := known[name]
				rule.Shadow = name == "trial"
				if name == tt.contested {
					contest(&rule.Limiter)
				} else if rule.Queues {
					others = append(others, fault(&rule.Limiter, nil))
				}
				all = append(all, rule)
			}
			d := take(t, newSet(t, remote, all...), to("a@b.example"))
			taken := slices.ContainsFunc(others, func(f *faulty) bool { return f.takes.Load() > 0 })
			if d.Allowed || d.Rule != tt.contested || len(d.Charges) != 0 || taken {
				t.Errorf("%v, %s contested: a queue is charged %v, %+v", tt.order, tt.contested, taken, d)
			}
		}
	})
}

// Where two queues filled up since they were asked, the longer wait is told.
func TestTake_TwoQueuesContested_NamesTheLongestWait(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		for _, limits := range [][]int{{10, 4}, {4, 10}} {
			r := newRig(t)
			pace, domain := r.queue("pace", rules.ByAll, limits[0], 0), r.queue("domain", rules.ByDomain, limits[1], 0)
			contest(&pace.Limiter)
			contest(&domain.Limiter)
			if d := take(t, newSet(t, remote, r.mailbox("minute=1/60s"), pace, domain), to("a@b.example")); d.Allowed || d.Verdict.Wait != 250 || len(d.Refusals) != 2 {
				t.Errorf("%v a second: %+v", limits, d)
			}
		}
	})
}

// A refusal stays one where the quota is free again before the answer, or where a queue
// that is not charged fails when it is asked again.
func TestTake_RefusalWhileCharging_Stays(t *testing.T) {
	both(t, func(t *testing.T, remote bool) {
		r := newRig(t)
		pace, domain := r.queue("pace", rules.ByAll, 14, 50), r.queue("domain", rules.ByDomain, 14, 0)
		peeks := 0
		queue := fault(&pace.Limiter, func(call, _ string, made bool) error {
			if call == "peek" && !made {
				if peeks++; peeks > 1 {
					return errFailed
				}
			}
			return nil
		})
		narrow, other := domain.Limiter, throttle.Admission{ID: throttle.NewID(), At: start}
		fault(&domain.Limiter, func(call, key string, made bool) (err error) {
			switch {
			case call == "take" && !made:
				_, err = narrow.Take(ctx, key, other.ID)
			case call == "take":
				_, err = narrow.Release(ctx, key, other)
			}
			return err
		})
		d := take(t, newSet(t, remote, r.mailbox("minute=1/60s"), pace, domain), to("a@b.example"))
		if d.Allowed || d.Rule != "domain" || d.Verdict.Wait != 72 || len(d.Refusals) != 1 || len(d.Charges) != 0 || queue.takes.Load() != 0 || peeks != 2 {
			t.Errorf("asked %d times, %+v", peeks, d)
		}
	})
}

func TestTake_Queues_LongestDelay(t *testing.T) {
	for _, limits := range [][]int{{10, 4}, {4, 10}} {
		r := newRig(t)
		shadow := r.queue("shadow", rules.ByAll, 1, 50)
		shadow.Shadow = true
		set := newSet(t, false, r.mailbox("minute=3/60s"), r.queue("one", rules.ByAll, limits[0], 50), r.queue("two", rules.ByAll, limits[1], 50), shadow)
		for _, want := range []int64{0, 250, 500} {
			p := peek(t, set, to("a@b.example"))
			if d := take(t, set, to("a@b.example")); !d.Allowed || d.Delay != want || p.Delay != want {
				t.Errorf("%v a second: %v, in %d ms, by Peek %d, want %d", limits, d.Allowed, d.Delay, p.Delay, want)
			}
		}
		if d := take(t, set, to("a@b.example")); d.Allowed || d.Delay != 0 {
			t.Errorf("%v, in %d ms", d.Allowed, d.Delay)
		}
	}
}
