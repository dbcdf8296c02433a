package throttletest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

const racers = 64

// races lets many callers of one key act at once: no more are admitted than one by one.
func races(t *testing.T, open Open) {
	rounds := Length(50, 1000)
	algorithms := Counters(t, "minute=3/60s")
	algorithms["tiers"] = Policy(t, "minute=3/60s,hour=5/1h")
	for name, a := range algorithms {
		t.Run(name, func(t *testing.T) {
			k := newKey(t, open, a)
			for range rounds {
				k.name = newName()
				if n := Race(t, k.limiter, k.name, racers); n != 3 {
					t.Fatalf("%d admitted, want 3", n)
				}
			}
		})
	}
	t.Run("one id is charged once", func(t *testing.T) {
		k := newKey(t, open, Policy(t, "minute=3/60s"))
		for range rounds {
			k.name = newName()
			id := throttle.NewID()
			together(racers, func(int) { k.take(id) })
			if h := k.history(); len(h) != 1 {
				t.Fatalf("history %v of one id", h)
			}
		}
	})
}

// Race lets callers goroutines Take from one key at once, and returns how many were admitted.
func Race(t testing.TB, limiter *throttle.Limiter, name string, callers int) int {
	t.Helper()
	var admitted atomic.Int64
	together(callers, func(int) {
		v, err := limiter.Take(context.Background(), name)
		if err != nil {
			t.Error(err)
		}
		if v.Allowed {
			admitted.Add(1)
		}
	})
	return int(admitted.Load())
}

// together makes calls at once.
func together(callers int, call func(i int)) {
	var done sync.WaitGroup
	ready := make(chan struct{})
	for i := range callers {
		done.Go(func() {
			<-ready
			call(i)
		})
	}
	close(ready)
	done.Wait()
}
