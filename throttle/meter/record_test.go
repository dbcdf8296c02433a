package meter_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// Named is a meter that says something of its own, and counts as the one inside.
type named struct{ meter.Meter }

func (named) String() string { return "by another name" }

// What has left a window is not recorded, also where somebody has wrapped it. A bucket has
// no such moment.
func TestRecordOfWhatHasLeft(t *testing.T) {
	for _, tt := range []struct {
		m       meter.Meter
		records bool
	}{
		{must(meter.NewFixedWindow(tier(5, minute))), false},
		{must(meter.NewSlidingWindow(tier(5, minute), 0)), false},
		{must(meter.NewTokenBucket(tier(5, minute), 0)), true},
		{must(meter.NewLeakyBucket(tier(5, minute), 4)), true},
	} {
		for _, m := range []meter.Meter{tt.m, named{tt.m}} {
			var s meter.State
			a := throttle.Admission{ID: throttle.NewID(), At: start}
			if records := meter.Record(m, &s, a, start+2*minute); records != tt.records {
				t.Errorf("%v, %s: recorded %t two minutes after it was sent", tt.m, m, records)
			}
		}
	}
}
