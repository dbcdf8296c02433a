package outage_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
)

// years is a window whose edge no test lives to see.
var years = throttle.Tier{Name: "years", Limit: 3, Window: 87_840 * 3_600_000}

// threeInYears admit three at once, each in its way.
func threeInYears(t *testing.T) map[string]meter.Meter {
	t.Helper()
	fixed, err := meter.NewFixedWindow(years)
	sliding, err2 := meter.NewSlidingWindow(years, 0)
	token, err3 := meter.NewTokenBucket(years, 0)
	leaky, err4 := meter.NewLeakyBucket(years, 2)
	for _, err := range []error{err, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]meter.Meter{"fixed": fixed, "sliding": sliding, "token": token, "leaky": leaky}
}

// Whichever way is counted: what was charged together counts alone, what was charged alone
// counts afterwards, and what was given back alone does not.
func TestMetersInAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	disk := cachetest.Open(t, cache.Memory)
	n := openPeerOn(t, disk, server.URL(), policy(t, "day=9/24h"))
	meters, err := local.NewMeters(disk, local.MetersOptions{Now: n.clock, Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(meters.Close)
	ways := map[string]*outage.Limiter{}
	last := map[string]throttle.ID{} // of which also a queue has the place free again
	take := func(name string, want, degraded bool) throttle.ID {
		t.Helper()
		id := throttle.NewID()
		v, err := ways[name].Take(context.Background(), alice, id)
		if err != nil || v.Allowed != want || v.Degraded != degraded {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		return id
	}
	giveBack := func(name string) {
		t.Helper()
		if had, err := ways[name].Release(context.Background(), alice, last[name]); err != nil || !had {
			t.Errorf("%s: release: %v, %v", name, had, err)
		}
	}
	for name, m := range threeInYears(t) {
		ways[name] = n.watch.Limiter(name, 2*years.Window, n.shared.Meter(name, m), meters.Limiter(name, m))
		take(name, true, false)
	}
	server.Kill()
	for name := range ways {
		take(name, true, true)
		last[name] = take(name, true, true)
		take(name, false, true)
		giveBack(name)
		last[name] = take(name, true, true)
		take(name, false, true)
	}
	server.Restart()
	awaitHealth(t, n.watch)
	for name := range ways {
		take(name, false, false)
		giveBack(name)
		take(name, true, false)
		take(name, false, false)
	}
}
