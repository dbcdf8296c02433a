package throttle_test

import (
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// The algorithms, in memory, keep the contract of a limiter.
func TestAlgorithms_InMemory_KeepTheContract(t *testing.T) {
	var clock atomic.Pointer[func() int64] // of the limiter that was opened last
	zero := func() int64 { return 0 }
	clock.Store(&zero)
	store, err := cache.Open(cache.Options{Now: func() int64 { return (*clock.Load())() }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	throttletest.Run(t, func(_ testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter {
		clock.Store(&now)
		return local.New(store.Table(throttle.NewID().String()), a, now)
	}, throttletest.Length(20_000, 1_000_000))
}
