package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Keys expire, are swept, given back and reset, and come again, while others ask about them and
// wait for what is another key's by then. In the end every entry is where it is looked for.
func TestKeysComeAndGoUnderWay(t *testing.T) {
	var clock atomic.Int64
	clock.Store(1_800_000_000_000)
	o := Options{Keys: 6, Now: clock.Load}
	of := func(limit int) meter.Meter {
		m, err := meter.NewTokenBucket(throttle.Tier{Name: "minute", Limit: limit, Window: 60_000}, 5)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	counting, keeping := New(of(5), o), NewTiers(throttletest.Policy(t, "minute=5/60s"), o)
	t.Run("meter", func(t *testing.T) {
		churn(t, &clock, counting, counting.With(of(50)))
		counting.states.inOrder(t)
	})
	t.Run("tiers", func(t *testing.T) {
		churn(t, &clock, keeping, keeping.With(throttletest.Policy(t, "seconds=5/10s")))
		keeping.histories.inOrder(t)
	})
}

// churn asks both for twelve keys, from many sides at once.
func churn(t *testing.T, clock *atomic.Int64, both ...throttle.Limiter) {
	const callers = 8
	turns := 20_000
	if testing.Short() {
		turns /= 4
	}
	var admitted atomic.Int64
	var done sync.WaitGroup
	for caller := range callers {
		done.Go(func() {
			ctx := context.Background()
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			var last throttle.ID
			for range turns {
				l, key := both[random.IntN(len(both))], fmt.Sprint("key ", random.IntN(12))
				switch random.IntN(6) {
				case 0:
					l.Reset(ctx, key)
				case 1:
					l.Release(ctx, key, last)
				case 2:
					l.Peek(ctx, key)
				default:
					id := throttle.NewID()
					if v, err := l.Take(ctx, key, id); err == nil && v.Allowed {
						admitted.Add(1)
						last = id
					}
				}
				clock.Add(int64(random.IntN(500)))
			}
		})
	}
	done.Wait()
	if n := admitted.Load(); n < callers {
		t.Errorf("%d were admitted", n)
	}
}

// inOrder looks at every entry of a table that nobody uses.
func (t *table[S]) inOrder(tb testing.TB) {
	tb.Helper()
	entries := 0
	for i := range t.shards {
		s := &t.shards[i]
		for place, x := range s.due {
			e := x.entry
			if !e.TryLock() {
				tb.Fatal("an entry is still locked")
			}
			if int(e.place) != place || s.index.Load().find(fingerprint{e.first, e.second}) != e {
				tb.Errorf("the entry at %d is not found, or believes to be at %d", place, e.place)
			}
			if until := t.kind.until(&e.state); x.due > until || x.due < s.due[max(0, place-1)/2].due {
				tb.Errorf("due at %d, expired at %d, and behind one that is due at %d", x.due, until, s.due[max(0, place-1)/2].due)
			}
			e.Unlock()
		}
		if x := s.index.Load(); x != nil {
			for slot := range x.slots {
				if x.slots[slot].Load() != 0 {
					entries++
				}
			}
		}
		entries -= len(s.due)
	}
	if kept := t.kept.Load(); entries != 0 || kept != t.queued() {
		tb.Errorf("%d entries are in no queue; %d places are taken by %d", entries, kept, t.queued())
	}
}

// queued is how many entries are in the queues.
func (t *table[S]) queued() (n int64) {
	for i := range t.shards {
		n += int64(len(t.shards[i].due))
	}
	return n
}
