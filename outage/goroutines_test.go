package outage_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
)

// However many keys there are, and in whichever way they are counted, none has a goroutine:
// not in a limiter on the disk, and not in a pair of them.
func TestNoGoroutineForAKey(t *testing.T) {
	const keys = 1000
	now := func() int64 { return start }
	theirs, ours := namedMeters(t, cachetest.Open(t, cache.Memory), "meters", now), cachetest.Open(t, cache.Memory)
	own, watch := namedMeters(t, ours, "meters", now), openWatch(t, ours, new(line))
	for name, way := range threeInYears(t) {
		for home, limiter := range map[string]throttle.Limiter{
			"alone": own.Limiter("alone-"+name, way),
			"pair":  watch.Limiter(name, 2*years.Window, theirs.Limiter(name, way), own.Limiter(name, way)),
		} {
			before := runtime.NumGoroutine()
			for i := range keys {
				if v, err := limiter.Take(context.Background(), fmt.Sprint("key", i), throttle.NewID()); err != nil || !v.Allowed {
					t.Fatalf("%s, %s: %v, %v", name, home, v.Allowed, err)
				}
			}
			if more := runtime.NumGoroutine() - before; more > keys/10 { // stores have some of their own
				t.Errorf("%s, %s: %d goroutines for %d keys", name, home, more, keys)
			}
		}
	}
}
