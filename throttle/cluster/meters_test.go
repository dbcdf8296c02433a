package cluster_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/cluster/redistest"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func conformMeters(t *testing.T, url string, steps int) {
	throttletest.RunMeters(t, throttletest.OneStore(func(t testing.TB, now func() int64) func(meter.Meter) throttle.Limiter {
		limiter := open(t, cluster.Options{URL: url, Clock: now, Timeout: patient})
		return func(m meter.Meter) throttle.Limiter { return limiter.Meter("suite", m) }
	}), steps)
}

func TestMetersAlone(t *testing.T)    { conformMeters(t, redistest.Alone(t).URL(), 5_000) }
func TestMetersCluster(t *testing.T)  { conformMeters(t, redistest.Cluster(t).URL(), 200) }
func TestMetersSentinel(t *testing.T) { conformMeters(t, redistest.Sentinel(t).URL(), 200) }
