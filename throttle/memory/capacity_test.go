package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const start = int64(1_800_000_000_000)

// bucket admits two at once, and one more in each half minute.
func bucket(t testing.TB) meter.Meter { return burst(t, 2) }

// burst admits so many at once, and one more in each half minute.
func burst(t testing.TB, sends int) meter.Meter {
	t.Helper()
	m, err := meter.NewTokenBucket(throttle.Tier{Name: "minute", Limit: 2, Window: 60_000}, sends)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// limiters are one of each kind, with room for so many keys.
func limiters(t testing.TB, keys int, now func() int64) map[string]throttle.Limiter {
	policy := throttletest.Policy(t, "minute=2/30s")
	o := memory.Options{Keys: keys, Now: now}
	return map[string]throttle.Limiter{"meter": memory.New(bucket(t), o), "tiers": memory.NewTiers(policy, o)}
}

func take(t testing.TB, l throttle.Limiter, key string) (throttle.Verdict, throttle.ID) {
	t.Helper()
	id := throttle.NewID()
	v, err := l.Take(context.Background(), key, id)
	if err != nil {
		t.Fatalf("take for %s: %v", key, err)
	}
	return v, id
}

func release(t testing.TB, l throttle.Limiter, key string, id throttle.ID) {
	t.Helper()
	if released, err := l.Release(context.Background(), key, id); !released || err != nil {
		t.Fatalf("release for %s: %v, %v", key, released, err)
	}
}

func refused(t testing.TB, l throttle.Limiter, key string) {
	t.Helper()
	v, err := l.Take(context.Background(), key, throttle.NewID())
	if !errors.Is(err, memory.ErrFull) || !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
		t.Fatalf("take for one key too many: allowed %v, %v", v.Allowed, err)
	}
	if want := "take: the history is unavailable: as many keys as Options.Keys has room for still count"; err.Error() != want {
		t.Fatalf("the error says %q, want %q", err, want)
	}
}

// A full table refuses new keys, forgets none and goes on with those it has.
func TestFull(t *testing.T) {
	const keys = 1000
	clock := clocktest.New(start)
	for name, l := range limiters(t, keys, clock.Now) {
		t.Run(name, func(t *testing.T) {
			clock.Set(start)
			for i := range keys {
				take(t, l, fmt.Sprint("key", i))
			}
			for i := range 3 * keys {
				refused(t, l, fmt.Sprint("stranger", i))
			}
			if v, err := l.Peek(context.Background(), "stranger1"); err != nil || !v.Allowed {
				t.Errorf("peek of an unknown key: %v, %v", v.Allowed, err)
			}
			for i := range keys {
				v, _ := take(t, l, fmt.Sprint("key", i))
				if again, _ := take(t, l, fmt.Sprint("key", i)); !v.Allowed || again.Allowed {
					t.Fatalf("key %d was forgotten, or refused its second send", i)
				}
			}
		})
	}
}

// A place is free when its key is reset or given back, and when what was sent counts no
// more; not a millisecond earlier.
func TestRoomAgain(t *testing.T) {
	clock := clocktest.New(start)
	for name, l := range limiters(t, 3, clock.Now) {
		t.Run(name, func(t *testing.T) {
			clock.Set(start)
			ctx := context.Background()
			_, id := take(t, l, "a")
			take(t, l, "b")
			clock.Add(10_000)
			take(t, l, "c")
			refused(t, l, "d")
			release(t, l, "a", id)
			take(t, l, "d")
			refused(t, l, "a")
			if cleared, err := l.Reset(ctx, "d"); cleared != 1 || err != nil {
				t.Fatalf("reset: %d, %v", cleared, err)
			}
			take(t, l, "e")
			clock.Set(start + 29_999)
			refused(t, l, "f")
			clock.Set(start + 30_000) // b counts no more
			take(t, l, "f")
			refused(t, l, "b")
			clock.Set(start + 40_000) // c and e neither
			take(t, l, "g")
			take(t, l, "h")
			refused(t, l, "i")
		})
	}
}

// One that counts for longer than it seemed is not swept, and one that counts for
// shorter is.
func TestExpiryMoves(t *testing.T) {
	clock := clocktest.New(start)
	for name, l := range limiters(t, 2, clock.Now) {
		t.Run(name, func(t *testing.T) {
			clock.Set(start)
			take(t, l, "longer")
			take(t, l, "shorter")
			clock.Add(20_000)
			take(t, l, "longer")
			_, id := take(t, l, "shorter")
			release(t, l, "shorter", id)
			clock.Set(start + 29_999)
			refused(t, l, "new")
			clock.Set(start + 30_000)
			take(t, l, "new")
			refused(t, l, "newer")
			if n, err := l.Reset(context.Background(), "longer"); n != 1 || err != nil {
				t.Fatalf("reset cleared %d, %v; want the one that still counts", n, err)
			}
		})
	}
}

// A send that is given back lets a key expire sooner than it was known to: its place is free
// from then on.
func TestAReleaseMovesExpiryForward(t *testing.T) {
	clock := clocktest.New(start)
	for name, l := range limiters(t, 1, clock.Now) {
		t.Run(name, func(t *testing.T) {
			clock.Set(start)
			take(t, l, "key")
			clock.Add(20_000)
			_, id := take(t, l, "key")
			clock.Set(start + 30_000)
			refused(t, l, "new") // now it is known to count for longer than its first send
			clock.Set(start + 20_000)
			release(t, l, "key", id)
			clock.Set(start + 30_000)
			take(t, l, "new")
		})
	}
}
