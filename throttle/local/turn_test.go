package local_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A stall is a clock at which the second to read it stays, as one does who has the key and
// a drive that hangs.
type stall struct {
	ms    atomic.Int64
	reads atomic.Int64
	read  chan int64    // how many have
	goOn  chan struct{} // closed to let the second go on
	once  sync.Once
}

func newStall() *stall {
	s := &stall{read: make(chan int64, 100), goOn: make(chan struct{})}
	s.ms.Store(noon)
	return s
}

func (s *stall) now() int64 {
	n := s.reads.Add(1)
	s.read <- n
	if n == 2 {
		<-s.goOn
	}
	return s.ms.Load()
}

func (s *stall) end() { s.once.Do(func() { close(s.goOn) }) }

// await returns when the clock was read so often.
func (s *stall) await(t *testing.T, n int64) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case read := <-s.read:
			if read == n {
				return
			}
		case <-deadline:
			s.end()
			t.Fatalf("the clock was not read %d times", n)
		}
	}
}

// inTurn runs a test with limiters that admit two in a minute, by each kind.
func inTurn(t *testing.T, test func(t *testing.T, s *stall, l throttle.Limiter)) {
	disk := cachetest.Open(t, cache.Memory)
	t.Run("tiers", func(t *testing.T) {
		s, two := newStall(), policyOf(t, "minute=2/60s")
		test(t, s, openLimiter(t, disk, local.Options{Policy: two, Now: s.now}))
	})
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			s := newStall()
			test(t, s, openMeters(t, disk, local.MetersOptions{Name: name, Now: s.now}).Limiter("turn", algorithm(t, 2)))
		})
	}
}

// What is admitted is dated when it is, and not when somebody began to wait for it: or two
// could be admitted sooner after each other than the limit lets them.
func TestAdmittedWhenItsTurnComes(t *testing.T) {
	inTurn(t, func(t *testing.T, s *stall, l throttle.Limiter) {
		done := make(chan int64, 2)
		admit := func() {
			v, err := l.Take(context.Background(), "key", throttle.NewID())
			if err != nil || !v.Allowed {
				t.Errorf("allowed %t, %v", v.Allowed, err)
			}
			done <- v.Now
		}
		go admit()
		s.await(t, 2)
		go admit()
		s.await(t, 3)
		s.ms.Add(30_000)
		s.end()
		for range 2 {
			if at := <-done; at != noon+30_000 {
				t.Errorf("admitted as of %d ms before it was", noon+30_000-at)
			}
		}
	})
}

// Who waits for a key that another has gives up when his context ends, and is charged
// nothing.
func TestNobodyWaitsBeyondItsContext(t *testing.T) {
	inTurn(t, func(t *testing.T, s *stall, l throttle.Limiter) {
		first := make(chan error, 1)
		go func() {
			_, err := l.Take(context.Background(), "key", throttle.NewID())
			first <- err
		}()
		s.await(t, 2)
		ctx, cancel := context.WithCancel(context.Background())
		var gone sync.WaitGroup
		for call, ask := range asks(l) {
			gone.Go(func() {
				if err := ask(ctx); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, throttle.ErrUnchanged) || !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", call, err)
				}
			})
		}
		s.await(t, 3)
		cancel()
		gone.Wait()
		s.end()
		if err := <-first; err != nil {
			t.Error(err)
		}
		if n := remaining(t, l, "key"); n != 1 {
			t.Errorf("%d left", n)
		}
	})
}

// asks are the calls that wait for a key.
func asks(l throttle.Limiter) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"take":    func(ctx context.Context) error { _, err := l.Take(ctx, "key", throttle.NewID()); return err },
		"peek":    func(ctx context.Context) error { _, err := l.Peek(ctx, "key"); return err },
		"release": func(ctx context.Context) error { _, err := l.Release(ctx, "key", throttle.NewID()); return err },
		"reset":   func(ctx context.Context) error { _, err := l.Reset(ctx, "key"); return err },
	}
}
