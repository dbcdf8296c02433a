package rules_test

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const start = int64(20_833 * 86_400_000) // the beginning of a day

var (
	ctx  = context.Background()
	both = []bool{false, true} // rules that are asked one after the other, and at once
)

func to(mailbox string) rules.Send {
	return rules.Send{Mailbox: mailbox, Client: netip.MustParseAddr("192.0.2.1"), Caller: "web", Template: "code", Purpose: "login"}
}

// rig makes rules over one store in memory and one clock.
type rig struct {
	testing.TB
	clock atomic.Int64
	store *cache.Store
}

func newRig(t testing.TB) *rig {
	r := &rig{TB: t}
	r.clock.Store(start)
	r.store = must.Get(cache.Open(cache.Options{Now: r.clock.Load}))(t)
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

func (r *rig) exact(name string, by rules.By, tiers string) rules.Rule {
	policy := throttletest.Policy(r, tiers)
	return rules.Rule{Name: name, By: by, Limiter: local.New(r.store.Table(name), policy)}
}

func (r *rig) mailbox(tiers string) rules.Rule {
	return r.exact(rules.MailboxRule, rules.ByMailbox, tiers)
}

// quota is a rule of so many sends a day, of which so many can be resends.
func (r *rig) quota(name string, limit, resends int) rules.Rule {
	counter := func(limit int) throttle.Algorithm {
		return must.Get(throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: limit, Window: 24 * time.Hour}))(r)
	}
	return rules.Rule{Name: name, By: rules.ByAll, Limiter: local.New(r.store.Table(name), counter(limit)), Resends: counter(resends)}
}

// queue is a rule that lets so many sends leave in a second and holds so many back.
func (r *rig) queue(name string, by rules.By, limit, waiting int) rules.Rule {
	b := must.Get(throttle.NewLeakyBucket(throttle.Tier{Name: "second", Limit: limit, Window: time.Second}, waiting))(r)
	return rules.Rule{Name: name, By: by, Limiter: local.New(r.store.Table(name), b)}
}

func (r *rig) set(remote bool, all ...rules.Rule) *rules.Set {
	return must.Get(rules.New(rules.Options{Remote: remote}, all...))(r)
}

// take and peek may be called by many at once, so they do not end the test.
func take(t testing.TB, set *rules.Set, send rules.Send) rules.Decision {
	return answered(t)(set.Take(ctx, send, throttle.NewID()))
}

func peek(t testing.TB, set *rules.Set, send rules.Send) rules.Decision {
	return answered(t)(set.Peek(ctx, send))
}

func answered(t testing.TB) func(rules.Decision, error) rules.Decision {
	return func(d rules.Decision, err error) rules.Decision {
		if err != nil {
			t.Error(err)
		}
		return d
	}
}

// left is how many sends a rule still admits, past its faults.
func (r *rig) left(rule rules.Rule, key string) int {
	if f, ok := rule.Limiter.Home.(*throttletest.Faulty); ok {
		rule.Limiter = throttle.New(rule.Limiter.Algorithm, f.Home)
	}
	return must.Get(rule.Limiter.Peek(ctx, key))(r).Remaining()
}

// fault makes the limiter fail at these events.
func fault(l **throttle.Limiter, events ...string) *throttletest.Faulty {
	f := &throttletest.Faulty{}
	*l = f.Break(*l)
	f.Fail(events...)
	return f
}

// contest lets another send be faster: it is charged right after each Peek and, where it is
// brief, refunded right after a Take.
func contest(l **throttle.Limiter, brief bool) {
	well, other := *l, throttle.Admission{ID: throttle.NewID(), At: start}
	f := fault(l)
	f.On(func(ctx context.Context, event, key string) (err error) {
		if event == "peeked" {
			_, err = well.TakeID(ctx, key, other.ID)
		} else if event == "taken" && brief {
			_, err = well.Release(ctx, key, other)
		}
		return err
	})
}
