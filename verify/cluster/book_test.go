package cluster_test

import (
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/cluster"
	"github.com/mailgate/mailgate/verify/verifytest"
)

// patient is a timeout for tests that are not about deadlines, on a busy machine.
const patient = 20 * time.Second

func openStore(t testing.TB, o redisstore.Options) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func conform(t *testing.T, url string, steps int) {
	verifytest.Run(t, func(t testing.TB, now func() int64) verify.Book {
		return cluster.New(openStore(t, redisstore.Options{URL: url, Clock: now, Timeout: patient}))
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
