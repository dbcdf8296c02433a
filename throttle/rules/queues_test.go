package rules_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle/rules"
)

// Simultaneous sends of which few are admitted take few positions in the queue of all.
func TestTake_Simultaneous_RefusedTakeNoPosition(t *testing.T) {
	for _, remote := range both {
		r := newRig(t)
		pace, domain := r.queue("pace", rules.ByAll, 14, 50), r.queue("domain", rules.ByDomain, 14, 3)
		fault(&domain.Limiter, meet(40, "peek", "take")) // all see room before any is charged
		if n := takeAtOnce(t, r.set(remote, pace, domain, r.mailbox("minute=40/60s")), 40, "a@b.example"); n != 4 || r.left(pace, "all") != 47 {
			t.Errorf("%d sent to one domain, %d of 51 positions left; want 4 and 47", n, r.left(pace, "all"))
		}
		if n := takeAtOnce(t, r.set(remote, pace, r.mailbox("hour=5/1h")), 64, "a@b.example"); n != 1 || r.left(pace, "all") != 46 {
			t.Errorf("%d more sent to one mailbox, %d of 51 positions left; want 1 and 46", n, r.left(pace, "all"))
		}
	}
}

// A queue is charged when no narrower rule can refuse any more, in whichever order rules are
// written, and a shadow queue when none can.
func TestTake_RaceLost_ChargesNoWiderQueue(t *testing.T) {
	for order, contested := range map[string]string{"pace mailbox": "mailbox", "pace domain mailbox": "domain", "domain pace mailbox": "domain",
		"domain mailbox pace": "domain", "mailbox domain site": "domain", "mailbox trial pace": "pace"} {
		for _, remote := range both {
			r := newRig(t)
			known := map[string]rules.Rule{"mailbox": r.mailbox("minute=1/60s"), "pace": r.queue("pace", rules.ByAll, 14, 0),
				"domain": r.queue("domain", rules.ByDomain, 14, 0), "site": r.queue("site", rules.ByDomain, 14, 0), "trial": r.queue("trial", rules.ByDomain, 14, 0)}
			var all []rules.Rule
			for name := range strings.FieldsSeq(order) {
				rule := known[name]
				rule.Shadow = name == "trial"
				if name == contested {
					contest(&rule.Limiter)
				} else if rule.Queues {
					fault(&rule.Limiter, func(event, _ string) error {
						if event == "take" {
							t.Errorf("%s, %s contested, remote %v: %s is charged", order, contested, remote, name)
						}
						return nil
					})
				}
				all = append(all, rule)
			}
			if d := take(t, r.set(remote, all...), to("a@b.example")); d.Allowed || d.Rule != contested || len(d.Charges) != 0 {
				t.Errorf("%s, %s contested, remote %v: %+v", order, contested, remote, d)
			}
		}
	}
}

// Where two queues filled up since they were asked, the longer wait is told.
func TestTake_TwoQueuesContested_NamesTheLongestWait(t *testing.T) {
	for _, limits := range [][]int{{10, 4}, {4, 10}} {
		r := newRig(t)
		pace, domain := r.queue("pace", rules.ByAll, limits[0], 0), r.queue("domain", rules.ByDomain, limits[1], 0)
		contest(&pace.Limiter)
		contest(&domain.Limiter)
		if d := take(t, r.set(false, r.mailbox("minute=1/60s"), pace, domain), to("a@b.example")); d.Allowed || d.Verdict.Wait != 250 || len(d.Refusals) != 2 {
			t.Errorf("%v a second: %+v", limits, d)
		}
	}
}

func TestTake_Queues_LongestDelay(t *testing.T) {
	for _, limits := range [][]int{{10, 4}, {4, 10}} {
		r := newRig(t)
		shadow := r.queue("shadow", rules.ByAll, 1, 50)
		shadow.Shadow = true
		set := r.set(false, r.mailbox("minute=3/60s"), r.queue("one", rules.ByAll, limits[0], 50), r.queue("two", rules.ByAll, limits[1], 50), shadow)
		for i, want := range []int64{0, 250, 500, 0} {
			p, d := peek(t, set, to("a@b.example")), take(t, set, to("a@b.example"))
			if d.Allowed != (i < 3) || d.Delay != want || p.Delay != want {
				t.Errorf("%v a second: %v, in %d ms, by Peek %d, want %d", limits, d.Allowed, d.Delay, p.Delay, want)
			}
		}
	}
}
