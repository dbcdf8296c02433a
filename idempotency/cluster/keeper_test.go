package cluster_test

import (
	"testing"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/idempotency/idempotencytest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// patient is a timeout for tests that are not about deadlines, on a busy machine.
const patient = 20 * time.Second

func open(t testing.TB, terms idempotency.Terms, o redisstore.Options) *cluster.Keeper {
	t.Helper()
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	keeper, err := cluster.New(store, terms)
	if err != nil {
		t.Fatal(err)
	}
	return keeper
}

func conform(t *testing.T, url string, steps int) {
	idempotencytest.Run(t, func(t testing.TB, terms idempotency.Terms, now func() int64) idempotency.Keeper {
		return open(t, terms, redisstore.Options{URL: url, Clock: now, Timeout: patient})
	}, steps)
}

func TestConformanceAlone(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Alone(t).URL(), 20_000)
}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Cluster(t).URL(), 2_000)
}
