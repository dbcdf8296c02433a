package memory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Many at once bring new keys while old ones expire, in a table that is nearly always
// full: nothing that counts is forgotten, and no place is lost.
func TestSweepUnderWay(t *testing.T) {
	const keys, callers = 64, 8
	turns := 1500
	if testing.Short() {
		turns = 500
	}
	var clock atomic.Int64
	clock.Store(start)
	for name, l := range limiters(t, keys, clock.Load) {
		t.Run(name, func(t *testing.T) {
			var full atomic.Int64
			var done sync.WaitGroup
			for caller := range callers {
				done.Go(func() {
					for i := range turns {
						if !staysOnRecord(t, l, fmt.Sprint(caller, " ", i)) {
							full.Add(1)
						}
						clock.Add(300)
					}
				})
			}
			done.Wait()
			if n := full.Load(); n == 0 || n == int64(callers*turns) {
				t.Errorf("%d of %d takes met a full table; both cases were to be tried", n, callers*turns)
			}
			clock.Add(1_000_000) // everything has expired
			for i := range keys {
				take(t, l, fmt.Sprint("new", i))
			}
			refused(t, l, "one more")
		})
	}
}

// staysOnRecord takes for a new key and looks whether it is on record, unless there is no
// room for it.
func staysOnRecord(t *testing.T, l throttle.Limiter, key string) (room bool) {
	ctx := context.Background()
	took, err := l.Take(ctx, key, throttle.NewID())
	if errors.Is(err, memory.ErrFull) {
		return false
	}
	if err != nil || !took.Allowed {
		t.Errorf("the first take: allowed %v, %v", took.Allowed, err)
		return true
	}
	v, err := l.Peek(ctx, key)
	if left := v.Tiers()[0].Remaining; err != nil || v.Now < took.Now+30_000 && left != 1 {
		t.Errorf("%d ms after the first of two sends %d are left, %v", v.Now-took.Now, left, err)
	}
	return true
}

// A burst of keys does not stay: as new ones come the expired go, two for one.
func TestTheExpiredGo(t *testing.T) {
	const burst = 20_000
	clock := clocktest.New(start)
	for name, l := range limiters(t, 2*burst, clock.Now) {
		t.Run(name, func(t *testing.T) {
			clock.Set(start)
			for i := range burst {
				take(t, l, fmt.Sprint("burst", i))
			}
			held := heap()
			clock.Add(40_000)
			for i := range burst {
				take(t, l, fmt.Sprint("after", i))
			}
			if now := heap(); now > held*5/4 {
				t.Errorf("%d keys that expired were replaced by as many, and memory went from %d to %d bytes", burst, held, now)
			}
			runtime.KeepAlive(l)
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Of many who bring one new key to a full table all want a place for it, and only one
// needs it: the others' places are not lost.
func TestOneNewKeyInAFullTable(t *testing.T) {
	const keys, rounds = 8, 300
	clock := clocktest.New(start)
	for name, l := range limiters(t, keys, clock.Now) {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				for i := range keys {
					take(t, l, fmt.Sprint(round, " old ", i))
				}
				clock.Add(1_000_000) // all have expired
				if n := throttletest.Race(t, l, fmt.Sprint(round, " new"), 2*keys); n != 2 {
					t.Fatalf("round %d: %d admitted, want 2", round, n)
				}
				for i := range keys - 1 {
					take(t, l, fmt.Sprint(round, " more ", i))
				}
				refused(t, l, "one more")
				clock.Add(1_000_000)
			}
		})
	}
}
