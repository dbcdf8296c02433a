package throttletest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/mailgate/mailgate/throttle"
)

// ErrFault is what the calls of a Faulty fail with.
var ErrFault = errors.Join(throttle.ErrUnavailable, errors.New("dial tcp 10.1.2.3:6379: connection refused"))

// Faulty is a limiter with faults. Without a hook it has none.
type Faulty struct {
	throttle.Historian
	Degraded bool // each verdict says that the node decided alone
	hook     atomic.Pointer[Hook]
}

// Hook is called before each call ("take", "release", "peek", "reset"), and after a Take ("taken") or
// a Peek ("peeked"). An error replaces the answer.
type Hook func(ctx context.Context, event, key string) error

// On replaces the hook.
func (f *Faulty) On(hook Hook) { f.hook.Store(&hook) }

// Fail makes these events fail, and no others.
func (f *Faulty) Fail(events ...string) {
	f.On(func(_ context.Context, event, _ string) error {
		if slices.Contains(events, event) {
			return ErrFault
		}
		return nil
	})
}

func (f *Faulty) on(ctx context.Context, event, key string) error {
	if hook := f.hook.Load(); hook != nil {
		return (*hook)(ctx, event, key)
	}
	return nil
}

func (f *Faulty) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if err = f.on(ctx, "take", key); err == nil {
		v, err = f.Historian.Take(ctx, key, id)
		v.Degraded = v.Degraded || f.Degraded
		err = errors.Join(err, f.on(ctx, "taken", key))
	}
	return v, err
}

func (f *Faulty) Release(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	if err := f.on(ctx, "release", key); err != nil {
		return false, err
	}
	return f.Historian.Release(ctx, key, a)
}

func (f *Faulty) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	if err = f.on(ctx, "peek", key); err == nil {
		v, err = f.Historian.Peek(ctx, key)
		v.Degraded = v.Degraded || f.Degraded
		err = errors.Join(err, f.on(ctx, "peeked", key))
	}
	return v, err
}

func (f *Faulty) Reset(ctx context.Context, key string) (int, error) {
	if err := f.on(ctx, "reset", key); err != nil {
		return 0, err
	}
	return f.Historian.Reset(ctx, key)
}
