package cluster_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/cluster/redistest"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func open(t testing.TB, o cluster.Options) *cluster.Limiter {
	t.Helper()
	limiter, err := cluster.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limiter.Close() })
	return limiter
}

func TestConformanceAlone(t *testing.T) {
	server := redistest.Alone(t)
	throttletest.Run(t, func(t testing.TB, p throttle.Policy, now func() int64) throttle.Limiter {
		return open(t, cluster.Options{URL: server.URL(), Policy: p, Clock: now, Timeout: 10e9})
	}, 20_000)
}
