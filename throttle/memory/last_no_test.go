package memory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A no is remembered, and so are its conditions: the key, the meter, the clock and the ids on
// record. What changes on record is known at once.
func TestANoIsSaidAgainOnlyWhereItHolds(t *testing.T) {
	clock := clocktest.New(start)
	type limiters struct{ two, three throttle.Limiter }
	bucket := memory.New(burst(t, 2), memory.Options{Now: clock.Now})
	tiers := memory.NewTiers(throttletest.Policy(t, "minute=2/30s"), memory.Options{Now: clock.Now})
	for name, l := range map[string]limiters{
		"meter": {bucket, bucket.With(burst(t, 3))},
		"tiers": {tiers, tiers.With(throttletest.Policy(t, "minute=3/30s"))},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			denied := func(l throttle.Limiter, key string, wait int64) {
				t.Helper()
				for range 2 {
					v, _ := take(t, l, key)
					if seen, err := l.Peek(ctx, key); v.Allowed || v.Wait != wait || seen.Allowed || seen.Wait != wait || err != nil {
						t.Fatalf("take: %v for %d, peek: %v for %d, %v; want a no for %d", v.Allowed, v.Wait, seen.Allowed, seen.Wait, err, wait)
					}
					if l, counts := l.(*memory.Limiter); counts {
						if r := count(t, l, key); r.Allowed || r.Wait != wait {
							t.Fatalf("count: %v for %d; want a no for %d", r.Allowed, r.Wait, wait)
						}
					}
				}
			}
			clock.Set(start)
			_, first := take(t, l.two, "key")
			_, second := take(t, l.two, "key")
			denied(l.two, "key", 30_000)
			clock.Add(10_000)
			denied(l.two, "key", 20_000)
			if v, err := l.two.Take(ctx, "key", first); !v.Allowed || err != nil {
				t.Errorf("an id on record: %v, %v", v.Allowed, err)
			}
			if v, _ := take(t, l.two, "another"); !v.Allowed {
				t.Error("another key is denied")
			}
			clock.Add(-15_000) // behind what is on record, which counts as the moment
			denied(l.two, "key", 30_000)
			clock.Add(15_000)
			if v, _ := take(t, l.three, "key"); !v.Allowed {
				t.Error("who admits three is told the no of who admits two")
			}
			denied(l.three, "key", 20_000)
			if released, err := l.three.Release(ctx, "key", second); !released || err != nil {
				t.Fatalf("release: %v, %v", released, err)
			}
			if v, _ := take(t, l.three, "key"); !v.Allowed {
				t.Error("denied although one was given back")
			}
			denied(l.three, "key", 20_000)
			if _, err := l.two.Reset(ctx, "key"); err != nil {
				t.Fatal(err)
			}
			if v, _ := take(t, l.two, "key"); !v.Allowed {
				t.Error("denied although the key was reset")
			}
		})
	}
}

// Many look at a key without its lock while it is filled, emptied and forgotten, and while
// others come and go around it. Each sees it as it was at one time, and who has changed it sees
// that.
func TestWhatIsSeenWithoutTheLock(t *testing.T) {
	const lookers = 3
	turns := 1000
	if testing.Short() {
		turns = 300
	}
	var clock atomic.Int64
	all := limiters(t, 1<<16, clock.Load)
	three := map[string]throttle.Limiter{
		"meter": all["meter"].(*memory.Limiter).With(burst(t, 3)),
		"tiers": all["tiers"].(*memory.Tiers).With(throttletest.Policy(t, "minute=3/30s")),
	}
	for name, l := range all {
		t.Run(name, func(t *testing.T) {
			clock.Store(start)
			ctx := context.Background()
			var done sync.WaitGroup
			var stop atomic.Bool
			for looker := range lookers {
				done.Go(func() {
					for i := 0; !stop.Load(); i++ {
						v, err := l.Peek(ctx, "key")
						standing := v.Tiers()[0]
						if err != nil || v.Allowed != (standing.Wait == 0) || v.Wait != standing.Wait || v.Wait > 60_000 {
							t.Errorf("%v for %d, and %v; %v", v.Allowed, v.Wait, standing, err)
							return
						}
						other := fmt.Sprint("other ", looker, i/3%200)
						switch i % 3 {
						case 0, 1:
							if v, err := l.Take(ctx, other, throttle.NewID()); !v.Allowed || err != nil {
								t.Errorf("%s: %v, %v", other, v.Allowed, err)
								return
							}
						case 2:
							if n, err := l.Reset(ctx, other); n == 0 || err != nil {
								t.Errorf("%s: reset cleared %d, %v", other, n, err)
								return
							}
						}
					}
				})
			}
			for turn := range turns {
				take(t, l, "key")
				_, id := take(t, l, "key")
				seen(t, l, turn, false)
				refusedOnce(t, l, turn)
				if released, err := l.Release(ctx, "key", id); !released || err != nil {
					t.Fatalf("turn %d: release: %v, %v", turn, released, err)
				}
				seen(t, l, turn, true)
				clock.Add(7)
				take(t, l, "key")
				refusedOnce(t, l, turn)
				clock.Add(7)
				if v, _ := take(t, three[name], "key"); !v.Allowed {
					t.Fatalf("turn %d: who admits three is refused", turn)
				}
				seen(t, l, turn, false)
				if _, err := l.Reset(ctx, "key"); err != nil {
					t.Fatal(err)
				}
				seen(t, l, turn, true)
			}
			stop.Store(true)
			done.Wait()
		})
	}
}

func seen(t *testing.T, l throttle.Limiter, turn int, allowed bool) {
	t.Helper()
	if v, err := l.Peek(context.Background(), "key"); err != nil || v.Allowed != allowed {
		t.Fatalf("turn %d: peek: %v, %v; want %v", turn, v.Allowed, err, allowed)
	}
}

func refusedOnce(t *testing.T, l throttle.Limiter, turn int) {
	t.Helper()
	if v, _ := take(t, l, "key"); v.Allowed {
		t.Fatalf("turn %d: admitted beyond the limit", turn)
	}
}
