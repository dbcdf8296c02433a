package cachetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Stall is a clock that keeps one of those who read it, as a drive that hangs keeps a
// caller who has a key, until End.
type Stall struct {
	ms    atomic.Int64
	keeps int64
	reads atomic.Int64
	kept  chan struct{}
	ended chan struct{}
	end   sync.Once
}

// NewStall is a clock that stands at now and keeps the one who reads it as the keeps-th.
func NewStall(t testing.TB, now, keeps int64) *Stall {
	s := &Stall{keeps: keeps, kept: make(chan struct{}), ended: make(chan struct{})}
	s.ms.Store(now)
	t.Cleanup(s.End)
	return s
}

// Now reads the clock.
func (s *Stall) Now() int64 {
	if s.reads.Add(1) == s.keeps {
		close(s.kept)
		<-s.ended
	}
	return s.ms.Load()
}

// Pass sets the clock forward.
func (s *Stall) Pass(ms int64) { s.ms.Add(ms) }

// End lets the one go on who was kept.
func (s *Stall) End() { s.end.Do(func() { close(s.ended) }) }

// Kept returns when somebody is.
func (s *Stall) Kept(t testing.TB) {
	t.Helper()
	soon(t, s.kept, "nobody read the clock that keeps him")
}

// A Waiter is a context that knows that somebody waits for its end, as one does who waits
// for the turn of another to be over.
type Waiter struct {
	context.Context
	begun chan struct{}
	once  sync.Once
}

// NewWaiter is a context that ends with ctx.
func NewWaiter(ctx context.Context) *Waiter {
	return &Waiter{Context: ctx, begun: make(chan struct{})}
}

// Done implements context.Context.
func (w *Waiter) Done() <-chan struct{} {
	w.once.Do(func() { close(w.begun) })
	return w.Context.Done()
}

// Waits returns when somebody does.
func (w *Waiter) Waits(t testing.TB) {
	t.Helper()
	soon(t, w.begun, "nobody waits for this context")
}

// LetGo asks each call with a context that ends while it waits, and expects an error of all
// these kinds.
func LetGo(t *testing.T, calls map[string]func(ctx context.Context) error, kinds ...error) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			waiter, gone := NewWaiter(ctx), make(chan error, 1)
			go func() { gone <- call(waiter) }()
			waiter.Waits(t)
			cancel()
			err := <-gone
			for _, kind := range append(kinds, context.Canceled) {
				if !errors.Is(err, kind) {
					t.Errorf("%v is not: %v", err, kind)
				}
			}
		})
	}
}

func soon(t testing.TB, done <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal(otherwise)
	}
}
