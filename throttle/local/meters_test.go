package local_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
)

// algorithms makes a meter of each kind that admits so many sends at once. None is free
// again for an hour.
var algorithms = map[string]func(t testing.TB, limit int) meter.Meter{
	"fixed":   func(t testing.TB, limit int) meter.Meter { return made(meter.NewFixedWindow(daily(limit)))(t) },
	"sliding": func(t testing.TB, limit int) meter.Meter { return made(meter.NewSlidingWindow(daily(limit), 24))(t) },
	"bucket":  func(t testing.TB, limit int) meter.Meter { return made(meter.NewTokenBucket(daily(1), limit))(t) },
	"queue":   func(t testing.TB, limit int) meter.Meter { return made(meter.NewLeakyBucket(daily(1), limit-1))(t) },
}

func daily(limit int) throttle.Tier {
	return throttle.Tier{Name: "day", Limit: limit, Window: 86_400_000}
}

func made[M meter.Meter](m M, err error) func(testing.TB) meter.Meter {
	return func(t testing.TB) meter.Meter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func standing() int64 { return noon }

func openMeters(t testing.TB, disk *cache.Disk, o local.MetersOptions) *local.Meters {
	t.Helper()
	meters, err := local.NewMeters(disk, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(meters.Close)
	return meters
}

// take insists on an answer, and that it is the wanted one.
func take(t testing.TB, limiter throttle.Limiter, key string, id throttle.ID, want bool) {
	t.Helper()
	v, err := limiter.Take(context.Background(), key, id)
	if err != nil || v.Allowed != want {
		t.Fatalf("take for %q: allowed %t, %v; want %t", key, v.Allowed, err, want)
	}
}

// remaining is how many sends the one limit still admits.
func remaining(t testing.TB, limiter throttle.Limiter, key string) int {
	t.Helper()
	v, err := limiter.Peek(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return v.Tiers()[0].Remaining
}

// What was admitted counts after a restart, can be given back then, and what was given
// back or reset does not come back.
func TestMetersAfterARestart(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	restart := func(use func(meters *local.Meters)) {
		disk, err := cache.Open(cache.DiskOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		meters := openMeters(t, disk, local.MetersOptions{Now: standing})
		use(meters)
		meters.Close()
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first, last := throttle.NewID(), throttle.NewID()
	restart(func(meters *local.Meters) {
		for name, algorithm := range algorithms {
			limiter := meters.Limiter(name, algorithm(t, 2))
			take(t, limiter, "kept", first, true)
			take(t, limiter, "kept", last, true)
			take(t, limiter, "reset", first, true)
			if n, err := limiter.Reset(ctx, "reset"); n != 1 || err != nil {
				t.Errorf("%s: reset cleared %d, %v", name, n, err)
			}
		}
	})
	restart(func(meters *local.Meters) {
		for name, algorithm := range algorithms {
			limiter := meters.Limiter(name, algorithm(t, 2))
			take(t, limiter, "kept", throttle.NewID(), false)
			take(t, limiter, "kept", first, true) // it is on record
			if n := remaining(t, limiter, "reset"); n != 2 {
				t.Errorf("%s: %d left after a reset", name, n)
			}
			if released, err := limiter.Release(ctx, "kept", last); !released || err != nil {
				t.Errorf("%s: released %t, %v", name, released, err)
			}
		}
	})
	restart(func(meters *local.Meters) {
		for name, algorithm := range algorithms {
			limiter := meters.Limiter(name, algorithm(t, 2))
			if n := remaining(t, limiter, "kept"); n != 1 {
				t.Errorf("%s: %d left after a release", name, n)
			}
			if n, err := limiter.Reset(ctx, "kept"); n != 1 || err != nil {
				t.Errorf("%s: reset cleared %d, %v", name, n, err)
			}
		}
	})
}

// Limits of one name and form count together, also when the number has changed; other
// names and other forms count apart.
func TestMetersOfOneNameShareACount(t *testing.T) {
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			meters := openMeters(t, cachetest.Open(t, cache.Memory), local.MetersOptions{Now: standing})
			old := meters.Limiter("quota", algorithm(t, 3))
			take(t, old, "all", throttle.NewID(), true)
			take(t, meters.Limiter("quota", algorithm(t, 3)), "all", throttle.NewID(), true)
			take(t, old, "all", throttle.NewID(), true)
			take(t, old, "all", throttle.NewID(), false)

			raised := meters.Limiter("quota", algorithm(t, 4))
			take(t, raised, "all", throttle.NewID(), true)
			take(t, raised, "all", throttle.NewID(), false)
			take(t, old, "all", throttle.NewID(), false)
			take(t, meters.Limiter("quota", algorithm(t, 1)), "all", throttle.NewID(), false)

			for form, other := range algorithms {
				if n := remaining(t, meters.Limiter("quota", other(t, 4)), "all"); (n == 0) != (form == name) {
					t.Errorf("%d left by %s", n, form)
				}
			}
			take(t, meters.Limiter("quotas", algorithm(t, 1)), "all", throttle.NewID(), true)
			take(t, old, "else", throttle.NewID(), true)
		})
	}
}

// Whatever names, forms and keys are made of, no two of them are one.
func TestMetersAreApart(t *testing.T) {
	meters := openMeters(t, cachetest.Open(t, cache.Memory), local.MetersOptions{Now: standing})
	names := []string{"", "a", "a/fixed-86400000", "a\x00", "a\x00b", "a%00", "\x00", "/", "%2F", "é", "\xff"}
	keys := []string{"b", "\x00b", "b\x00b", "/fixed-86400000\x00b", "fixed-86400000\x00b", "\x00", "/", strings.Repeat("k", throttle.MaxKey)}
	for _, want := range []bool{true, false} {
		for _, name := range names {
			for form, algorithm := range algorithms {
				limiter := meters.Limiter(name, algorithm(t, 1))
				for _, key := range keys {
					v, err := limiter.Take(context.Background(), key, throttle.NewID())
					if err != nil || v.Allowed != want {
						t.Fatalf("name %q, %s, key %.40q: allowed %t, %v; want %t", name, form, key, v.Allowed, err, want)
					}
				}
			}
		}
	}
}

// Every byte in the directory is the same after any number of questions, refusals,
// repetitions and releases in vain, of keys in memory and of keys that are read back.
func TestWhatChangesNothingWritesNothing(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	disk := cachetest.Open(t, dir)
	meters := openMeters(t, disk, local.MetersOptions{Size: small, Now: standing})
	policies := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Size: small, Now: standing})
	limiters := map[string]throttle.Limiter{"tiers": policies.Tiers("named", throttle.DefaultPolicy())}
	for name, algorithm := range algorithms {
		limiters[name] = meters.Limiter(name, algorithm(t, 1))
	}
	ids := map[string]throttle.ID{}
	for range 50 {
		id := throttle.NewID()
		ids[id.String()] = id
		for _, limiter := range limiters {
			take(t, limiter, id.String(), id, true)
		}
	}
	before := bytesOf(t, dir)
	for key, id := range ids {
		for name, limiter := range limiters {
			for range 3 {
				take(t, limiter, key, throttle.NewID(), false)
				take(t, limiter, key, id, true)
				if released, err := limiter.Release(ctx, key, throttle.NewID()); released || err != nil {
					t.Fatalf("%s: released %t, %v", name, released, err)
				}
				if v, err := limiter.Peek(ctx, key); v.Allowed || err != nil {
					t.Fatalf("%s: peek: allowed %t, %v", name, v.Allowed, err)
				}
			}
		}
	}
	if !maps.Equal(before, bytesOf(t, dir)) {
		t.Error("something was written")
	}
	take(t, limiters["fixed"], "another", throttle.NewID(), true)
	if maps.Equal(before, bytesOf(t, dir)) {
		t.Error("an admission is not seen in the directory, so nothing was compared")
	}
}

// A no costs no memory, and neither does the question, of a key that is remembered.
func TestMetersAreFreeToRefuse(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	meters := openMeters(t, disk, local.MetersOptions{Now: standing})
	policies := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Now: standing})
	limiters := map[string]throttle.Limiter{"tiers": policies.Tiers("named", throttle.DefaultPolicy())}
	for name, algorithm := range algorithms {
		limiters[name] = meters.Limiter("provider-quota", algorithm(t, 1))
	}
	ctx, key := context.Background(), "a.key.of.some.length@mail.example.com"
	for name, limiter := range limiters {
		t.Run(name, func(t *testing.T) {
			take(t, limiter, key, throttle.NewID(), true)
			take(t, limiter, key, throttle.NewID(), false)
			id := throttle.NewID()
			if n := testing.AllocsPerRun(5000, func() { take(t, limiter, key, id, false) }); n > allocsToSpellAKey {
				t.Errorf("%v allocations for a denial", n)
			}
			if n := testing.AllocsPerRun(5000, func() {
				if v, err := limiter.Peek(ctx, key); v.Allowed || err != nil {
					t.Fatalf("allowed %t, %v", v.Allowed, err)
				}
			}); n > allocsToSpellAKey {
				t.Errorf("%v allocations for a question", n)
			}
		})
	}
}

func TestMetersOptionsThatWillNotDo(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	openMeters(t, disk, local.MetersOptions{Name: "taken"})
	for name, o := range map[string]local.MetersOptions{
		"half a size":  {Size: cache.Size{Entries: 1}},
		"a NUL inside": {Name: "a\x00b"},
		"a taken name": {Name: "taken"},
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := local.NewMeters(disk, o); err == nil {
				m.Close()
				t.Fatal("opened")
			}
		})
	}
}

func TestMetersThatCountNothing(t *testing.T) {
	meters := openMeters(t, cachetest.Open(t, cache.Memory), local.MetersOptions{})
	for _, m := range []meter.Meter{nil, meter.FixedWindow{}, meter.SlidingWindow{}, meter.TokenBucket{}, meter.LeakyBucket{}} {
		t.Run(fmt.Sprintf("%T", m), func(t *testing.T) {
			defer func() {
				if said := recover(); said != "local: a limiter needs a meter that one of package meter's New functions made" {
					t.Errorf("%v", said)
				}
			}()
			meters.Limiter("zero", m)
		})
	}
}

// After Close, and after the disk was closed, each call is unavailable, says why and
// does not spell out the key.
func TestMetersClosed(t *testing.T) {
	for name, closing := range map[string]func(*local.Meters, *cache.Disk) error{
		"meters": func(m *local.Meters, _ *cache.Disk) error { m.Close(); return nil },
		"disk":   func(_ *local.Meters, d *cache.Disk) error { return d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			disk := cachetest.Open(t, cache.Memory)
			meters := openMeters(t, disk, local.MetersOptions{})
			limiter := meters.Limiter("closed", algorithms["fixed"](t, 1))
			if err := meters.Ready(context.Background()); err != nil {
				t.Error(err)
			}
			if err := closing(meters, disk); err != nil {
				t.Fatal(err)
			}
			errs := callsOf(limiter, "alice@example.com")
			errs["ready"] = meters.Ready(context.Background())
			for call, err := range errs {
				if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) || strings.Contains(err.Error(), "alice") {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

func callsOf(limiter throttle.Limiter, key string) map[string]error {
	ctx, errs := context.Background(), map[string]error{}
	_, errs["take"] = limiter.Take(ctx, key, throttle.NewID())
	_, errs["peek"] = limiter.Peek(ctx, key)
	_, errs["release"] = limiter.Release(ctx, key, throttle.NewID())
	_, errs["reset"] = limiter.Reset(ctx, key)
	return errs
}

// What has expired says nothing more, and a clock that steps back finds it again until
// something new is written.
func TestMetersExpire(t *testing.T) {
	for name, algorithm := range algorithms {
		for _, memory := range memories(shortState) {
			t.Run(name+" "+memory.name, func(t *testing.T) {
				clock := clocktest.New(noon)
				meters := openMeters(t, cachetest.Open(t, t.TempDir()), local.MetersOptions{Size: memory.size, Now: clock.Now})
				by := algorithm(t, 1)
				limiter := meters.Limiter("expiry", by)
				take(t, limiter, "key", throttle.NewID(), true)
				var s meter.State
				by.Take(&s, throttle.NewID(), noon)
				clock.Set(by.Expires(&s) - 1)
				take(t, limiter, "key", throttle.NewID(), false)
				clock.Set(by.Expires(&s))
				if n := remaining(t, limiter, "key"); n != 1 {
					t.Errorf("%d left after all has expired", n)
				}
				clock.Set(noon)
				take(t, limiter, "key", throttle.NewID(), false)
				clock.Set(by.Expires(&s))
				take(t, limiter, "key", throttle.NewID(), true)
				clock.Set(noon)
				take(t, limiter, "key", throttle.NewID(), false)
			})
		}
	}
}
