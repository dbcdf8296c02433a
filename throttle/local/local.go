// Package local is the throttle.Limiter of one process: its records are in a cache.Table,
// in memory alone or also on disk.
//
//	store, err := cache.Open(cache.Options{Dir: "data"})
//	...
//	defer store.Close()
//	limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
//
// An admission is durable, as far as the store is, before Take returns. A refusal reads the
// record and writes nothing.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// Limiter is a throttle.Historian over a table. It belongs to the table's store and needs
// no closing.
type Limiter struct {
	table     *cache.Table // the part for the form of the algorithm's states
	algorithm throttle.Algorithm
}

// New returns the limiter that keeps the records of an algorithm in a table.
//
// Limiters over one table share its records if their algorithms have the same Form, for example to
// apply a stricter limit to some callers. Give them the same windows: each write forgets what has
// left the longest window of the limiter that wrote.
//
// New panics if the algorithm was not made by a constructor of package throttle.
func New(table *cache.Table, a throttle.Algorithm) *Limiter {
	form := a.Form()
	if form == "" {
		panic("local: the algorithm is a zero value")
	}
	return &Limiter{table.Part(form), a}
}

// Take implements throttle.Limiter.
func (l *Limiter) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, fmt.Errorf("take: %w", throttle.ErrID)
	}
	err = l.update(ctx, "take", key, func(old []byte, now int64) (next []byte) {
		next, v = l.algorithm.Take(old, throttle.Admission{ID: id, At: now})
		return next
	})
	if err != nil {
		return throttle.Verdict{}, err
	}
	return v, nil
}

// Peek implements throttle.Limiter.
func (l *Limiter) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	state, err := l.read(ctx, "peek", key)
	if err != nil {
		return throttle.Verdict{}, err
	}
	return l.algorithm.Peek(state, l.table.Now()), nil
}

// Release implements throttle.Limiter.
func (l *Limiter) Release(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	released := false
	err := l.update(ctx, "release", key, func(old []byte, _ int64) (next []byte) {
		next, released = l.algorithm.Release(old, a)
		return next
	})
	return released && err == nil, err
}

// Reset implements throttle.Limiter.
func (l *Limiter) Reset(ctx context.Context, key string) (int, error) {
	cleared := 0
	err := l.update(ctx, "reset", key, func(old []byte, now int64) []byte {
		cleared = l.algorithm.Peek(old, now).Sent
		return nil
	})
	if err != nil {
		return 0, err
	}
	return cleared, nil
}

// Record implements throttle.Limiter. It records all of the admissions in one step, oldest
// first.
func (l *Limiter) Record(ctx context.Context, key string, all ...throttle.Admission) error {
	for _, a := range all {
		if !a.ID.Valid() {
			return fmt.Errorf("record: %w", throttle.ErrID)
		}
	}
	if len(all) == 0 {
		return check(ctx, "record", key)
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
	return l.update(ctx, "record", key, func(state []byte, now int64) []byte {
		for _, a := range all {
			state = l.algorithm.Record(state, a, now)
		}
		return state
	})
}

// History implements throttle.Historian. A counter has no history: the error is
// errors.ErrUnsupported.
func (l *Limiter) History(ctx context.Context, key string) (throttle.History, error) {
	policy, err := l.policy()
	if err != nil {
		return nil, err
	}
	state, err := l.read(ctx, "history", key)
	if err != nil {
		return nil, err
	}
	return policy.History(state, l.table.Now()), nil
}

// Each implements throttle.Historian, as History does.
func (l *Limiter) Each(ctx context.Context, visit func(throttle.History) bool) error {
	policy, err := l.policy()
	if err != nil {
		return err
	}
	err = l.table.Each(ctx, func(_ string, state []byte) bool {
		h := policy.History(state, l.table.Now())
		return len(h) == 0 || visit(h)
	})
	if err != nil {
		return throttle.Unavailable("visiting all histories", err)
	}
	return nil
}

func (l *Limiter) policy() (throttle.Policy, error) {
	policy, ok := l.algorithm.(throttle.Policy)
	if !ok {
		return policy, fmt.Errorf("history of a %s: %w", l.algorithm, errors.ErrUnsupported)
	}
	return policy, nil
}

func (l *Limiter) read(ctx context.Context, doing, key string) ([]byte, error) {
	if err := check(ctx, doing, key); err != nil {
		return nil, err
	}
	state, err := l.table.Get(ctx, key)
	if err != nil {
		return nil, throttle.Unavailable(doing, err)
	}
	return state, nil
}

// update takes a step with the record's lock held.
func (l *Limiter) update(ctx context.Context, doing, key string, step func(old []byte, now int64) (next []byte)) error {
	if err := check(ctx, doing, key); err != nil {
		return err
	}
	err := l.table.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		next := step(old, now)
		return next, l.algorithm.Expires(next)
	})
	if err != nil {
		return throttle.Unavailable(doing, err)
	}
	return nil
}

func check(ctx context.Context, doing, key string) error {
	if err := throttle.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return throttle.Unavailable(doing, err)
	}
	return nil
}
