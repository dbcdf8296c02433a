package rules_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const (
	start  = int64(20_833 * 86_400_000) // the beginning of a day
	second = int64(1000)
	hour   = 3600 * second
)

var (
	ctx       = context.Background()
	visitor   = netip.MustParseAddr("192.0.2.1")
	errFailed = errors.New("failed")
)

func to(mailbox string) rules.Send {
	return rules.Send{Mailbox: mailbox, Domain: mailbox[strings.IndexByte(mailbox, '@')+1:], Client: visitor, Caller: "web", Template: "code"}
}

// rig makes rules over one store in memory and one clock.
type rig struct {
	t     testing.TB
	clock atomic.Int64
	store *cache.Store
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t}
	r.clock.Store(start)
	var err error
	if r.store, err = cache.Open(cache.Options{Now: r.clock.Load}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

func (r *rig) exact(name string, by rules.By, tiers string) rules.Rule {
	limiter := local.New(r.store.Table(name), throttletest.Policy(r.t, tiers), r.clock.Load)
	return rules.Rule{Name: name, By: by, Limiter: limiter, Exact: true}
}

func (r *rig) mailbox(tiers string) rules.Rule {
	return r.exact(rules.MailboxRule, rules.ByMailbox, tiers)
}

// quota is a rule of so many sends a day, of which so many can be resends.
func (r *rig) quota(name string, limit, resends int) rules.Rule {
	counter := func(limit int) throttle.Limiter {
		w, err := throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: limit, Window: 24 * time.Hour})
		if err != nil {
			r.t.Fatal(err)
		}
		return local.New(r.store.Table(name), w, r.clock.Load)
	}
	return rules.Rule{Name: name, By: rules.ByAll, Limiter: counter(limit), Resends: counter(resends)}
}

// queue is a rule that lets so many sends leave in a second and holds so many back.
func (r *rig) queue(name string, by rules.By, limit, waiting int) rules.Rule {
	b, err := throttle.NewLeakyBucket(throttle.Tier{Name: "second", Limit: limit, Window: time.Second}, waiting)
	if err != nil {
		r.t.Fatal(err)
	}
	return rules.Rule{Name: name, By: by, Limiter: local.New(r.store.Table(name), b, r.clock.Load), Queues: true}
}

func newSet(t testing.TB, remote bool, all ...rules.Rule) *rules.Set {
	t.Helper()
	set, err := rules.New(rules.Options{Remote: remote}, all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// both runs a test with rules that are asked one after the other, and at once.
func both(t *testing.T, test func(t *testing.T, remote bool)) {
	t.Run("local", func(t *testing.T) { test(t, false) })
	t.Run("remote", func(t *testing.T) { test(t, true) })
}

// take does not end the test, as many may take at once.
func take(t testing.TB, set *rules.Set, send rules.Send) rules.Decision {
	t.Helper()
	d, err := set.Take(ctx, send, throttle.NewID())
	if err != nil {
		t.Errorf("take: %v", err)
	}
	return d
}

func peek(t testing.TB, set *rules.Set, send rules.Send) rules.Decision {
	t.Helper()
	d, err := set.Peek(ctx, send)
	if err != nil {
		t.Errorf("peek: %v", err)
	}
	return d
}

// takeAtOnce counts how many of so many simultaneous sends are admitted.
func takeAtOnce(t testing.TB, set *rules.Set, many int, send func(i int) rules.Send) int {
	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if take(t, set, send(i)).Allowed {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	return int(admitted.Load())
}

// left is how many sends a rule still admits.
func left(t testing.TB, r rules.Rule, key string) int {
	t.Helper()
	if f, ok := r.Limiter.(*faulty); ok {
		r.Limiter = f.Historian
	}
	v, err := r.Limiter.Peek(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return v.Remaining()
}

// faulty is a limiter with injected faults.
type faulty struct {
	throttle.Historian
	hook     hook
	degraded bool
	takes    atomic.Int64
}

// hook is called before a call and after it was made. Its error replaces the answer.
type hook func(call, key string, made bool) error

// fault injects a hook, or none, into a rule's limiter.
func fault(l *throttle.Limiter, h hook) *faulty {
	f := &faulty{Historian: (*l).(throttle.Historian), hook: h}
	*l = f
	return f
}

func (f *faulty) do(call, key string, do func() error) error {
	if f.hook == nil {
		return do()
	}
	if err := f.hook(call, key, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return f.hook(call, key, true)
}

func (f *faulty) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	err = f.do("peek", key, func() (err error) { v, err = f.Historian.Peek(ctx, key); return err })
	v.Degraded = f.degraded
	return v, err
}

func (f *faulty) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	f.takes.Add(1)
	err = f.do("take", key, func() (err error) { v, err = f.Historian.Take(ctx, key, id); return err })
	v.Degraded = f.degraded
	return v, err
}

func (f *faulty) Release(ctx context.Context, key string, a throttle.Admission) (released bool, err error) {
	err = f.do("release", key, func() (err error) { released, err = f.Historian.Release(ctx, key, a); return err })
	return released, err
}

func (f *faulty) Reset(ctx context.Context, key string) (n int, err error) {
	err = f.do("reset", key, func() (err error) { n, err = f.Historian.Reset(ctx, key); return err })
	return n, err
}

// fails fails these calls before they are made.
func fails(calls ...string) hook {
	return func(call, _ string, made bool) error {
		if !made && slices.Contains(calls, call) {
			return errFailed
		}
		return nil
	}
}

// lost loses the answer to this call.
func lost(call string) hook {
	return func(this, _ string, made bool) error {
		if made && this == call {
			return errFailed
		}
		return nil
	}
}

// contest lets another send be faster: it is charged right after each Peek.
func contest(l *throttle.Limiter) {
	f := fault(l, nil)
	f.hook = func(call, key string, made bool) (err error) {
		if made && call == "peek" {
			_, err = f.Historian.Take(ctx, key, throttle.NewID())
		}
		return err
	}
}

// meet holds the first of these calls until so many have begun.
func meet(many int64, calls ...string) hook {
	begun, met := map[string]*atomic.Int64{}, map[string]chan struct{}{}
	for _, call := range calls {
		begun[call], met[call] = new(atomic.Int64), make(chan struct{})
	}
	return func(call, _ string, made bool) error {
		if made || begun[call] == nil {
			return nil
		}
		if begun[call].Add(1) == many {
			close(met[call])
		}
		select {
		case <-met[call]:
			return nil
		case <-time.After(10 * time.Second):
			return errors.New("the others are not asked at once")
		}
	}
}
