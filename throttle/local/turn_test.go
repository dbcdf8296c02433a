package local_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// inTurn runs a test with limiters that admit two in a minute, by each kind. Who takes looks
// at the clock once before he has the key, and the first who then has it is kept.
func inTurn(t *testing.T, test func(t *testing.T, s *cachetest.Stall, l throttle.Limiter)) {
	disk := cachetest.Open(t, cache.Memory)
	t.Run("tiers", func(t *testing.T) {
		s, two := cachetest.NewStall(t, noon, 2), throttletest.Policy(t, "minute=2/60s")
		test(t, s, openLimiter(t, disk, local.Options{Policy: two, Now: s.Now}))
	})
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			s := cachetest.NewStall(t, noon, 2)
			test(t, s, openMeters(t, disk, local.MetersOptions{Name: name, Now: s.Now}).Limiter("turn", algorithm(t, 2)))
		})
	}
}

// What is admitted is dated when it is, and not when somebody began to wait for it: or two
// could be admitted sooner after each other than the limit lets them.
func TestAdmittedWhenItsTurnComes(t *testing.T) {
	inTurn(t, func(t *testing.T, s *cachetest.Stall, l throttle.Limiter) {
		done := make(chan int64, 2)
		admit := func(ctx context.Context) {
			v, err := l.Take(ctx, "key", throttle.NewID())
			if err != nil || !v.Allowed {
				t.Errorf("allowed %t, %v", v.Allowed, err)
			}
			done <- v.Now
		}
		go admit(context.Background())
		s.Kept(t)
		second := cachetest.NewWaiter(context.Background())
		go admit(second)
		second.Waits(t)
		s.Pass(30_000)
		s.End()
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
	inTurn(t, func(t *testing.T, s *cachetest.Stall, l throttle.Limiter) {
		first := make(chan error, 1)
		go func() {
			_, err := l.Take(context.Background(), "key", throttle.NewID())
			first <- err
		}()
		s.Kept(t)
		cachetest.LetGo(t, map[string]func(ctx context.Context) error{
			"take":    func(ctx context.Context) error { _, err := l.Take(ctx, "key", throttle.NewID()); return err },
			"peek":    func(ctx context.Context) error { _, err := l.Peek(ctx, "key"); return err },
			"release": func(ctx context.Context) error { _, err := l.Release(ctx, "key", throttle.NewID()); return err },
			"reset":   func(ctx context.Context) error { _, err := l.Reset(ctx, "key"); return err },
		}, throttle.ErrUnavailable, throttle.ErrUnchanged)
		s.End()
		if err := <-first; err != nil {
			t.Error(err)
		}
		if n := remaining(t, l, "key"); n != 1 {
			t.Errorf("%d left", n)
		}
	})
}
