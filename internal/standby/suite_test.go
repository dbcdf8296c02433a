package standby_test

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// While Redis answers, the wrapped limiter is the shared one. Here that is a local limiter, by the
// clock of the suite, next to a Redis that is there.
func TestLimiter_Connected_Suite(t *testing.T) {
	n := start(t, redistest.Alone(t).URL())
	throttletest.Run(t, func(t testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter {
		store, err := cache.Open(cache.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return n.Limiter(throttle.NewID().String(), a, local.New(store.Table("shared"), a, now), local.New(store.Table("own"), a, now))
	}, 2000)
}
