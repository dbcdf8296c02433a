package clock_test

import (
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock"
)

// The clock is the wall's, to the millisecond.
func TestNow(t *testing.T) {
	for range 1000 {
		before := time.Now().UnixMilli()
		now := clock.Now()
		if after := time.Now().UnixMilli(); now < before || now > after {
			t.Fatalf("%d, and it is between %d and %d", now, before, after)
		}
	}
	if n := testing.AllocsPerRun(100, func() { clock.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
