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

// Faulty is a home with faults. Without a hook it has none.
type Faulty struct {
	throttle.Home
	Degraded bool // each reply says that the node decided alone
	hook     atomic.Pointer[Hook]
}

// Break returns the limiter with f in front of its home.
func (f *Faulty) Break(l *throttle.Limiter) *throttle.Limiter {
	f.Home = l.Home
	return throttle.New(l.Algorithm, f)
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

// Do implements throttle.Home.
func (f *Faulty) Do(ctx context.Context, key string, op throttle.Op) (r throttle.Reply, err error) {
	if err = f.on(ctx, string(op.Step), key); err != nil {
		return r, err
	}
	r, err = f.Home.Do(ctx, key, op)
	r.Degraded = r.Degraded || f.Degraded
	switch op.Step {
	case throttle.StepTake:
		err = errors.Join(err, f.on(ctx, "taken", key))
	case throttle.StepPeek:
		err = errors.Join(err, f.on(ctx, "peeked", key))
	}
	return r, err
}
