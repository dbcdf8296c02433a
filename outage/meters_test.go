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
	"github.com/mailgate/mailgate/throttle/throttletest"
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

// metered are limiters of one node, each of which counts in its own way.
type metered struct {
	t    *testing.T
	ways map[string]*outage.Limiter
	last map[string]throttle.ID // of which also a queue has the place free again
}

func openMetered(t *testing.T, n *peer, disk *cache.Disk) *metered {
	t.Helper()
	meters, err := local.NewMeters(disk, local.MetersOptions{Now: n.clock, Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(meters.Close)
	m := &metered{t: t, ways: map[string]*outage.Limiter{}, last: map[string]throttle.ID{}}
	for name, way := range threeInYears(t) {
		m.ways[name] = n.watch.Limiter(name, 2*years.Window, n.meters.Limiter(name, way), meters.Limiter(name, way))
	}
	return m
}

func (m *metered) take(name string, want, degraded bool) {
	m.t.Helper()
	id := throttle.NewID()
	v, err := m.ways[name].Take(context.Background(), alice, id)
	if err != nil || v.Allowed != want || v.Degraded != degraded {
		m.t.Errorf("%s: %+v, %v", name, v, err)
	}
	if want {
		m.last[name] = id
	}
}

func (m *metered) giveBack(name string) {
	m.t.Helper()
	if had, err := m.ways[name].Release(context.Background(), alice, m.last[name]); err != nil || !had {
		m.t.Errorf("%s: release: %v, %v", name, had, err)
	}
}

// Whichever way is counted: what was charged together counts alone, what was charged alone
// counts afterwards, and what was given back alone does not.
func TestMetersInAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	disk := cachetest.Open(t, cache.Memory)
	n := openPeerOn(t, disk, server.URL(), throttletest.Policy(t, "day=9/24h"))
	m := openMetered(t, n, disk)
	for name := range m.ways {
		m.take(name, true, false)
	}
	server.Kill()
	for name := range m.ways {
		m.take(name, true, true)
		m.take(name, true, true)
		m.take(name, false, true)
		m.giveBack(name)
		m.take(name, true, true)
		m.take(name, false, true)
	}
	server.Restart()
	awaitHealth(t, n.watch)
	for name := range m.ways {
		m.take(name, false, false)
		m.giveBack(name)
		m.take(name, true, false)
		m.take(name, false, false)
	}
}
