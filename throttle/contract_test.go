package throttle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// The algorithms alone keep the contract of a limiter, behind the plainest home there is.
func TestAlgorithms_BehindAMap_KeepTheContract(t *testing.T) {
	throttletest.Run(t, func(_ testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter {
		return &home{algorithm: a, now: now, records: map[string]kept{}}
	}, throttletest.Length(20_000, 1_000_000))
}

// home keeps states in a map under one lock.
type home struct {
	algorithm throttle.Algorithm
	now       func() int64
	sync.Mutex
	records map[string]kept
}

type kept struct {
	state   []byte
	expires int64
}

// update lets step replace the state of a key. It expects that a step depends on nothing
// but the state and leaves it as it is.
func (h *home) update(ctx context.Context, key string, step func(state []byte, now int64) ([]byte, int64)) error {
	if err := throttle.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return throttle.Unavailable("update", err)
	}
	h.Lock()
	defer h.Unlock()
	now := h.now()
	old := h.records[key]
	if now >= old.expires {
		old = kept{}
	}
	before := string(old.state)
	next, expires := step(old.state, now)
	again, expiresAgain := step(old.state, now)
	if string(next) != string(again) || expires != expiresAgain || before != string(old.state) {
		return fmt.Errorf("a step on %x became %x, and then %x", before, next, again)
	}
	if before == string(next) && next != nil && expires != old.expires {
		return fmt.Errorf("state %x expires at %d, and unchanged at %d", before, old.expires, expires)
	}
	h.records[key] = kept{next, expires}
	return nil
}

func (h *home) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.ErrID
	}
	err = h.update(ctx, key, func(state []byte, now int64) (next []byte, expires int64) {
		next, expires, v = h.algorithm.Take(state, throttle.Admission{ID: id, At: now})
		return next, expires
	})
	return v, err
}

func (h *home) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	err = h.update(ctx, key, func(state []byte, now int64) ([]byte, int64) {
		v = h.algorithm.Peek(state, now)
		return state, h.records[key].expires
	})
	return v, err
}

func (h *home) Release(ctx context.Context, key string, a throttle.Admission) (released bool, err error) {
	err = h.update(ctx, key, func(state []byte, _ int64) (next []byte, expires int64) {
		next, expires, released = h.algorithm.Release(state, a)
		return next, expires
	})
	return released, err
}

func (h *home) Reset(ctx context.Context, key string) (cleared int, err error) {
	err = h.update(ctx, key, func(state []byte, now int64) ([]byte, int64) {
		cleared = h.algorithm.Used(state, now)
		return nil, 0
	})
	return cleared, err
}

func (h *home) Record(ctx context.Context, key string, all ...throttle.Admission) error {
	for _, a := range all {
		if !a.ID.Valid() {
			return throttle.ErrID
		}
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
	return h.update(ctx, key, func(state []byte, now int64) ([]byte, int64) {
		expires := h.records[key].expires
		for _, a := range all {
			state, expires = h.algorithm.Record(state, a, now)
		}
		return state, expires
	})
}

func (h *home) History(ctx context.Context, key string) (history throttle.History, err error) {
	policy, ok := h.algorithm.(throttle.Policy)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	err = h.update(ctx, key, func(state []byte, now int64) ([]byte, int64) {
		history = policy.History(state, now)
		return state, h.records[key].expires
	})
	return history, err
}

func (h *home) Each(_ context.Context, visit func(throttle.History) bool) error {
	h.Lock()
	defer h.Unlock()
	for _, r := range h.records {
		if sends := h.algorithm.(throttle.Policy).History(r.state, h.now()); len(sends) > 0 && !visit(sends) {
			break
		}
	}
	return nil
}
