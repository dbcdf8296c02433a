package redisstore

import (
	"context"
	"time"
)

// within returns a context that ends after the timeout, or up to a twentieth of it
// earlier, and what to call when it is no longer needed. Of a context without an end the
// values are lost.
//
// Calls that begin within a few milliseconds share one timer: a timer of its own would
// cost a call about a tenth of all it does in this process.
func (s *Store) within(ctx context.Context) (context.Context, func()) {
	if ctx.Done() != nil {
		return context.WithTimeout(ctx, s.timeout)
	}
	now := time.Now()
	shared := s.deadline.Load()
	if shared == nil || shared.at.Sub(now) < s.timeout-s.timeout/20 {
		shared = newDeadline(now.Add(s.timeout), s.timeout)
		s.deadline.Store(shared)
	}
	return shared, func() {}
}

// A deadline is a context that ends at one moment and carries nothing.
type deadline struct {
	at   time.Time
	over chan struct{}
}

func newDeadline(at time.Time, in time.Duration) *deadline {
	d := &deadline{at: at, over: make(chan struct{})}
	time.AfterFunc(in, func() { close(d.over) })
	return d
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }
func (d *deadline) Done() <-chan struct{}       { return d.over }
func (d *deadline) Value(any) any               { return nil }

func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
