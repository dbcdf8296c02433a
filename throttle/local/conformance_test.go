package local_test

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What is remembered and what is read back take different ways through the cache, so
// the suite runs over all memories. A disk in memory differs from a directory in nothing
// but where Badger keeps its tables; TestRandomHistories covers it.
func TestConformance(t *testing.T) {
	for _, memory := range waysToConform(shortHistory) {
		t.Run(memory.name, func(t *testing.T) {
			throttletest.Run(t, opener(cachetest.Open(t, t.TempDir()), memory.size), 2000)
		})
	}
}

// opener opens limiters on one disk.
func opener(disk *cache.Disk, size cache.Size) throttletest.Open {
	return func(t testing.TB, p throttle.Policy, now func() int64) throttle.Historian {
		return openLimiter(t, disk, local.Options{Policy: p, Now: now, Size: size, Name: throttle.NewID().String()})
	}
}

func openLimiter(t testing.TB, disk *cache.Disk, o local.Options) *local.Limiter {
	t.Helper()
	limiter, err := local.New(disk, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
}

// Meters on disk pass theirs, too.
func TestMetersConform(t *testing.T) {
	for _, memory := range waysToConform(shortState) {
		t.Run(memory.name, func(t *testing.T) {
			disk := cachetest.Open(t, t.TempDir())
			throttletest.RunMetersAgain(t, throttletest.OneStore(func(t testing.TB, now func() int64) func(meter.Meter) throttle.Limiter {
				meters := openMeters(t, disk, local.MetersOptions{Name: throttle.NewID().String(), Size: memory.size, Now: now})
				return func(m meter.Meter) throttle.Limiter { return meters.Limiter("rule", m) }
			}), 10_000)
		})
	}
}
