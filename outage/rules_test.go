package outage_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
)

// promising says yes to whoever looks, so that a rule refuses only when it is charged.
type promising struct{ throttle.Recorder }

func (p promising) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	v, err := p.Recorder.Peek(ctx, key)
	v.Allowed = true
	return v, err
}

// two are the rules of a node: its mailboxes' own, and one for all that has its own way to
// what is shared.
type two struct {
	*node
	set   *rules.Set
	way   *shared
	there throttle.Recorder // how all stand in what is shared
}

func openTwo(t *testing.T) *two {
	t.Helper()
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
	return &two{node: n, set: set, way: way, there: there}
}

func (n *two) decide() rules.Decision {
	n.t.Helper()
	d, err := n.set.Take(context.Background(), rules.Send{Mailbox: alice}, throttle.NewID())
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

// One rule is decided together and the other alone, and either refuses: the place of the
// one that did not is given back where it was taken.
func TestRulesHereAndThere(t *testing.T) {
	for _, away := range []string{"mailbox", "all"} {
		t.Run(away+" is alone", func(t *testing.T) {
			n := openTwo(t)
			map[string]*shared{"mailbox": n.shared, "all": n.way}[away].set(silent)
			yes, no := n.decide(), n.decide()
			if !yes.Allowed || no.Allowed || no.Rule != "all" || no.Owed || !yes.Degraded || !no.Degraded {
				t.Errorf("%+v, %+v", yes, no)
			}
			n.shared.set(none)
			n.way.set(none)
			n.healthy()
			if got := n.history(n.shared.Survey, alice); len(got) != 1 {
				t.Errorf("the mailbox was charged %v", got)
			}
			if v, err := n.there.Peek(context.Background(), "all"); err != nil || v.Allowed {
				t.Errorf("all was not charged: %+v, %v", v, err)
			}
		})
	}
}

// recorded is a limiter without histories where one with them is wanted.
type recorded struct{ throttle.Recorder }

func (recorded) History(context.Context, string) (throttle.History, error) { return nil, nil }
func (recorded) Each(context.Context, func(throttle.History) bool) error   { return nil }

func openMeter(t *testing.T, m meter.Meter, clock *clocktest.Clock) throttle.Recorder {
	t.Helper()
	meters, err := local.NewMeters(cachetest.Open(t, cache.Memory), local.MetersOptions{Now: clock.Now, Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(meters.Close)
	return meters.Limiter("all", m)
}
