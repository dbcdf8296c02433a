package cluster_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func openMeters(url string) throttletest.OpenMeter {
	return throttletest.OneStore(func(t testing.TB, now func() int64) func(meter.Meter) throttle.Limiter {
		limiter := open(t, redisstore.Options{URL: url, Clock: now, Timeout: patient})
		return func(m meter.Meter) throttle.Limiter { return limiter.Meter("suite", m) }
	})
}

func TestMetersAlone(t *testing.T) {
	t.Parallel()
	throttletest.RunMeters(t, openMeters(redistest.Alone(t).URL()), 10_000)
}

// threeMeters admit three sends at once, each in its way.
var threeMeters = map[string]meter.Meter{
	"fixed":   must(meter.NewFixedWindow(threeSends)),
	"sliding": must(meter.NewSlidingWindow(threeSends, 0)),
	"token":   must(meter.NewTokenBucket(threeSends, 0)),
	"leaky":   must(meter.NewLeakyBucket(threeSends, 2)),
}

var threeSends = throttle.Tier{Name: "minute", Limit: 3, Window: 60_000}

func must[M meter.Meter](m M, err error) M {
	if err != nil {
		panic(err)
	}
	return m
}

// waysToThree are a limiter of three sends a minute, and all threeMeters on the same
// connections.
func waysToThree(limiter opened) []throttle.Limiter {
	all := []throttle.Limiter{limiter}
	for _, name := range slices.Sorted(maps.Keys(threeMeters)) {
		all = append(all, limiter.Meter(name, threeMeters[name]))
	}
	return all
}
