package standby_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// While Redis answers, the wrapped limiter is the shared one. Here that is a local limiter, by the
// clock of the suite, next to a Redis that is there.
func TestLimiter_Connected_Suite(t *testing.T) {
	n, open := start(t, redistest.Alone(t).URL()), throttletest.Local(t, "")
	throttletest.Run(t, func(t testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter {
		return n.Limiter(throttle.NewID().String(), a, open(t, a, now).(throttle.Historian), open(t, a, now).(throttle.Historian))
	}, 2000)
}
