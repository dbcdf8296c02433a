package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
	"github.com/redis/go-redis/v9"
)

const (
	mailbox = "alice@example.com"
	patient = 20 * time.Second // for tests that are not about time, on a busy machine
)

var ctx = context.Background()

func open(t testing.TB, o redisx.Options) redis.UniversalClient {
	t.Helper()
	client, err := redisx.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func limiter(t testing.TB, client redis.UniversalClient, a throttle.Algorithm) *cluster.Limiter {
	t.Helper()
	l, err := cluster.New(client, "test", a)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// opener opens limiters by the suite's clock.
func opener(client redis.UniversalClient) throttletest.Open {
	return func(t testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter {
		t.Helper()
		l, err := cluster.NewWithClock(client, throttle.NewID().String(), a, now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestLimiter_Standalone_KeepsTheContract(t *testing.T) {
	client := open(t, redisx.Options{URL: redistest.Alone(t).URL(), Timeout: patient})
	throttletest.Run(t, opener(client), throttletest.Length(5000, 100_000))
}
