package cluster_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// patient is a timeout for tests that are not about deadlines, on a busy machine.
const patient = 20 * time.Second

// openStore opens the servers of a URL, until the test ends.
func openStore(t testing.TB, o redisstore.Options) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// opened is a limiter by a policy, and those by meters on the same store.
type opened struct {
	*cluster.Limiter
	meters *cluster.Meters
}

// Meter is a limiter by a meter.
func (o opened) Meter(name string, m meter.Meter) throttle.Recorder { return o.meters.Limiter(name, m) }

// open makes a limiter of the default policy, on connections of its own.
func open(t testing.TB, o redisstore.Options) opened {
	t.Helper()
	return openWith(t, throttle.DefaultPolicy(), o)
}

func openWith(t testing.TB, p throttle.Policy, o redisstore.Options) opened {
	t.Helper()
	store := openStore(t, o)
	limiter, err := cluster.New(store, p)
	if err != nil {
		t.Fatal(err)
	}
	meters, err := cluster.NewMeters(store)
	if err != nil {
		t.Fatal(err)
	}
	return opened{limiter, meters}
}

// onOneStore opens limiters on the same connections. The clock is that of the last: the suite
// is done with one limiter before it opens the next.
func onOneStore(t *testing.T, url string) throttletest.Open {
	var clock atomic.Pointer[func() int64]
	store := openStore(t, redisstore.Options{URL: url, Clock: func() int64 { return (*clock.Load())() }, Timeout: patient})
	return func(t testing.TB, p throttle.Policy, now func() int64) throttle.Historian {
		clock.Store(&now)
		limiter, err := cluster.New(store, p)
		if err != nil {
			t.Fatal(err)
		}
		return limiter
	}
}

func TestConformanceAlone(t *testing.T) {
	t.Parallel()
	throttletest.Run(t, onOneStore(t, redistest.Alone(t).URL()), 100_000)
}

func TestConformanceCluster(t *testing.T) {
	url := redistest.Cluster(t).URL()
	besideOthers(t, "tiers", func(t *testing.T) { throttletest.RunAgain(t, onOneStore(t, url), 3_000) })
	besideOthers(t, "meters", func(t *testing.T) { throttletest.RunMetersAgain(t, openMeters(url), 3_000) })
}

// Once it is found, a master with sentinels is a server like one alone: so under -short the
// tiers are enough.
func TestConformanceSentinel(t *testing.T) {
	url := redistest.Sentinel(t).URL()
	besideOthers(t, "tiers", func(t *testing.T) { throttletest.RunAgain(t, onOneStore(t, url), 3_000) })
	if !testing.Short() {
		besideOthers(t, "meters", func(t *testing.T) { throttletest.RunMetersAgain(t, openMeters(url), 3_000) })
	}
}

// besideOthers is for a part of a test whose servers take long to start.
func besideOthers(t *testing.T, name string, check func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		check(t)
	})
}

// insist takes until there is an answer. A call that failed is made again with the same
// id, as a caller does: the id keeps it from being charged twice.
func insist(limiter throttle.Limiter, mailbox string, id throttle.ID) (v throttle.Verdict, err error) {
	for end := time.Now().Add(patient); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if v, err = limiter.Take(context.Background(), mailbox, id); err == nil {
			return v, nil
		}
	}
	return v, fmt.Errorf("still no answer after %v: %w", patient, err)
}

func take(t testing.TB, limiter throttle.Limiter, mailbox string, id throttle.ID) throttle.Verdict {
	t.Helper()
	v, err := insist(limiter, mailbox, id)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func admit(t testing.TB, limiter throttle.Limiter, mailbox string) throttle.ID {
	t.Helper()
	id := throttle.NewID()
	if v := take(t, limiter, mailbox, id); !v.Allowed {
		t.Fatalf("not admitted: %s waits %d ms", v.Limit, v.Wait)
	}
	return id
}

// mailboxOf is a fresh mailbox.
func mailboxOf(name string) string { return name + "-" + throttle.NewID().String() + "@example.com" }
