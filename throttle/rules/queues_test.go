package rules_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle/rules"
)

// A queue is charged when no narrower rule can refuse any more, in whichever order rules are
// written, and a shadow queue when none can. Of those that filled up the longest wait is told.
func TestTake_RaceLost_ChargesNoWiderQueue(t *testing.T) {
	for _, tt := range []struct{ order, contested, want string }{
		{"pace mailbox", "mailbox", "mailbox"},
		{"pace domain mailbox", "domain", "domain"},
		{"domain pace mailbox", "domain", "domain"},
		{"domain mailbox pace", "domain", "domain"},
		{"mailbox domain site", "domain", "domain"},
		{"mailbox trial pace", "pace", "pace"},
		{"slow domain mailbox", "domain slow", "slow"},
		{"pace site mailbox", "site pace", "site"},
	} {
		for _, remote := range both {
			r := newRig(t)
			known := map[string]rules.Rule{"mailbox": r.mailbox("minute=1/60s"), "trial": r.queue("trial", rules.ByDomain, 14, 0),
				"domain": r.queue("domain", rules.ByDomain, 14, 0), "site": r.queue("site", rules.ByDomain, 4, 0),
				"pace": r.queue("pace", rules.ByAll, 14, 0), "slow": r.queue("slow", rules.ByAll, 4, 0)}
			var all []rules.Rule
			for name := range strings.FieldsSeq(tt.order) {
				rule := known[name]
				rule.Shadow = name == "trial"
				if strings.Contains(tt.contested, name) {
					contest(&rule.Limiter, false)
				} else if rule.Limiter.Algorithm.Queues() {
					fault(&rule.Limiter).On(func(_ context.Context, event, _ string) error {
						if event == "take" {
							t.Errorf("%+v, remote %v: %s is charged", tt, remote, name)
						}
						return nil
					})
				}
				all = append(all, rule)
			}
			d := take(t, r.set(remote, all...), to("a@b.example"))
			if d.Allowed || d.Rule != tt.want || len(d.Refusals) != len(strings.Fields(tt.contested)) || len(d.Charges) != 0 {
				t.Errorf("%+v, remote %v: %+v", tt, remote, d)
			}
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
