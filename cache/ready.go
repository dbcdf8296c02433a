package cache

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// trialKey is what a trial writes. Nothing reads it, and no Map can: the names of maps
// have at least one byte before their NUL.
const trialKey = "\x00trial"

// trialInterval is how long the outcome of a trial counts, so that asking often costs
// nothing.
const trialInterval = time.Second

// Ready says whether a write would work now: it makes one, or goes by one that began
// less than a second ago. The room that is left is looked at each time, so a disk that
// has filled up is ErrFull at once. A drive that hangs is ErrDisk when ctx ends; no
// more than one such write waits for it.
func (d *Disk) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if d.visitors.closed.Load() {
		return ErrClosed
	}
	if err := d.watch.damage(); err != nil {
		return err
	}
	if err := d.room.check(now); err != nil {
		return err
	}
	return d.trial.outcome(ctx, now)
}

// Ready says whether an Update would work now; see [Disk.Ready].
func (m *Map[V]) Ready(ctx context.Context) error {
	if m.open.Load() == nil {
		return ErrClosed
	}
	return m.disk.Ready(ctx)
}

// A trial is a write that is made to see whether writes work.
type trial struct {
	write func() error
	mu    sync.Mutex
	last  *attempt // nil before the first
}

type attempt struct {
	began time.Time
	done  chan struct{} // closed when err is known
	err   error
}

// outcome is that of the last attempt, or of a new one if the last is over and too old.
func (t *trial) outcome(ctx context.Context, now time.Time) error {
	a := t.attempt(now)
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("%w: a write takes too long: %w", ErrDisk, ctx.Err())
	}
}

func (t *trial) attempt(now time.Time) *attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && !t.last.stale(now) {
		return t.last
	}
	a := &attempt{began: now, done: make(chan struct{})}
	t.last = a
	go func() {
		defer close(a.done)
		a.err = t.write()
	}()
	return a
}

func (a *attempt) stale(now time.Time) bool {
	select {
	case <-a.done:
		elapsed := now.Sub(a.began)
		return elapsed < 0 || elapsed >= trialInterval
	default:
		return false
	}
}
