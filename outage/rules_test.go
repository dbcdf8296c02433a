package outage_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// promising says yes to whoever looks, so that a rule refuses only when it is charged.
type promising struct{ throttle.Recorder }

func (p promising) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	v, err := p.Recorder.Peek(ctx, key)
	v.Allowed = true
	return v, err
}

// One rule is decided together and the other alone, and either refuses: the place of the
// one that did not is given back where it was taken.
func TestRulesHereAndThere(t *testing.T) {
	for _, away := range []string{"mailbox", "all"} {
		t.Run(away+" is alone", func(t *testing.T) {
			n, clock := opened(t, "minute=2/60s")
			day, err := meter.NewFixedWindow(throttle.Tier{Name: "day", Limit: 1, Window: 86_400_000})
			if err != nil {
				t.Fatal(err)
			}
			own, there := openMeter(t, day, clock), openMeter(t, day, clock)
			way := &shared{Survey: recorded{there}}
			all := n.watch.Limiter("all", 2*86_400_000, way, own)
			set, err := rules.New(rules.Options{Remote: true},
				rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: n.Historian},
				rules.Rule{Name: "all", By: rules.ByAll, Limiter: promising{all}})
			if err != nil {
				t.Fatal(err)
			}
			map[string]*shared{"mailbox": n.shared, "all": way}[away].set(silent)
			var decisions []rules.Decision
			for range 2 {
				d, err := set.Take(context.Background(), rules.Send{Mailbox: alice}, throttle.NewID())
				if err != nil {
					t.Fatal(err)
				}
				decisions = append(decisions, d)
			}
			if yes, no := decisions[0], decisions[1]; !yes.Allowed || no.Allowed || no.Rule != "all" || no.Owed || !yes.Degraded || !no.Degraded {
				t.Errorf("%+v", decisions)
			}
			n.shared.set(none)
			way.set(none)
			n.healthy()
			if got := n.history(n.shared.Survey, alice); len(got) != 1 {
				t.Errorf("the mailbox was charged %v", got)
			}
			if v, err := there.Peek(context.Background(), "all"); err != nil || v.Allowed {
				t.Errorf("all was not charged: %+v, %v", v, err)
			}
		})
	}
}

// recorded is a limiter without histories where one with them is wanted.
type recorded struct{ throttle.Recorder }

func (recorded) History(context.Context, string) (throttle.History, error) { return nil, nil }
func (recorded) Each(context.Context, func(throttle.History) bool) error   { return nil }

func openMeter(t *testing.T, m meter.Meter, clock *throttletest.Clock) throttle.Recorder {
	t.Helper()
	meters, err := local.NewMeters(cachetest.Open(t, cache.Memory), local.MetersOptions{Now: clock.Now, Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(meters.Close)
	return meters.Limiter("all", m)
}
