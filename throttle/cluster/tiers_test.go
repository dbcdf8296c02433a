package cluster_test

import (
	"testing"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func TestTiersWithoutAPolicy(t *testing.T) {
	server := redistest.Alone(t)
	for _, name := range []string{"", "named"} {
		t.Run(name, func(t *testing.T) {
			throttletest.RunZeroPolicy(t, func(t testing.TB, p throttle.Policy, now func() int64) throttle.Historian {
				return openWith(t, p, redisstore.Options{URL: server.URL(), Clock: now, Timeout: patient})
			}, func(l throttle.Historian, p throttle.Policy) throttle.Historian {
				return l.(opened).Tiers(name, p)
			})
		})
	}
}
