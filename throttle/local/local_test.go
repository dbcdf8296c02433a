package local_test

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func TestLimiter_InMemory_KeepsTheContract(t *testing.T) {
	throttletest.Run(t, func(t testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter {
		store, err := cache.Open(cache.Options{Bytes: 64 << 20, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return local.New(store.Table("limiter"), a, now)
	}, throttletest.Length(20_000, 1_000_000))
}
