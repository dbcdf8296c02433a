package throttletest_test

import (
	"context"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// The suite on the plainest store there is: one map and one lock.
func TestMetersInOneMap(t *testing.T) {
	throttletest.RunMeters(t, throttletest.OneStore(openMap), 60_000)
}

func openMap(t testing.TB, now func() int64) func(meter.Meter) throttle.Limiter {
	s := &store{states: map[string]*meter.State{}, now: now}
	return func(m meter.Meter) throttle.Limiter { return view{s, m} }
}

type store struct {
	lock   sync.Mutex
	states map[string]*meter.State
	now    func() int64
}

// A view counts by one meter on the states of its form.
type view struct {
	*store
	by meter.Meter
}

// with does something with a key's state and the lock held.
func (l view) with(ctx context.Context, key string, do func(s *meter.State, now int64)) error {
	if err := throttle.CheckCall(ctx, "asking", key); err != nil {
		return err
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	key = l.by.Form() + " " + key
	if l.states[key] == nil {
		l.states[key] = new(meter.State)
	}
	do(l.states[key], l.now())
	return nil
}

func (l view) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.WrongID("take")
	}
	quota := l.by.Quota()
	err = l.with(ctx, key, func(s *meter.State, now int64) {
		r, _ := l.by.Take(s, id, now)
		r.Spell(&v, &quota, now)
	})
	return v, err
}

func (l view) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	quota := l.by.Quota()
	err = l.with(ctx, key, func(s *meter.State, now int64) {
		r := l.by.Look(s, now)
		r.Spell(&v, &quota, now)
	})
	return v, err
}

func (l view) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	err = l.with(ctx, key, func(s *meter.State, now int64) { released = l.by.Release(s, id, now) })
	return released, err
}

func (l view) Reset(ctx context.Context, key string) (cleared int, err error) {
	err = l.with(ctx, key, func(s *meter.State, now int64) { cleared, *s = l.by.Used(s, now), meter.State{} })
	return cleared, err
}
