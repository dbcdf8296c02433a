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
	t.Run("each refusal names the moment", func(t *testing.T) {
		var moving atomic.Int64 // goes on whenever it is read
		moving.Store(start)
		k := key{t: t, limiter: open(t, Policy(t, "minute=3/60s"), func() int64 { return moving.Add(1) })}
		for range rounds {
			k.name = newName()
			var verdicts [racers]throttle.Verdict
			together(racers, func(i int) { verdicts[i] = k.take(throttle.NewID()) })
			h := k.history()
			if len(h) != 3 {
				t.Fatalf("history of %d, want 3", len(h))
			}
			for _, v := range verdicts {
				if !v.Allowed && v.RetryAt != h[0].At+60_000 {
					t.Fatalf("refused at %d until %d, want %d", v.Now, v.RetryAt, h[0].At+60_000)
				}
			}
		}
	})
}

// Race lets so many callers take from one key at once, and returns how many were admitted.
func Race(t testing.TB, limiter throttle.Limiter, name string, callers int) int {
	t.Helper()
	var admitted atomic.Int64
	together(callers, func(int) {
		v, err := limiter.Take(context.Background(), name, throttle.NewID())
		if err != nil {
			t.Error(err)
		}
		if v.Allowed {
			admitted.Add(1)
		}
	})
	return int(admitted.Load())
}

// together makes so many calls at once.
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
