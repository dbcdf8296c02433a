package meter_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// The bare decision: a denial, and an admission by a limit that is far off.
func BenchmarkDecision(b *testing.B) {
	for _, limit := range []int{60, 1_000_000} {
		quota := tier(limit, 60*minute)
		for _, m := range []meter.Meter{
			must(meter.NewFixedWindow(quota)), must(meter.NewSlidingWindow(quota, 0)),
			must(meter.NewTokenBucket(quota, 0)), must(meter.NewLeakyBucket(quota, limit-1)),
		} {
			var s meter.State
			for range 60 {
				m.Take(&s, throttle.NewID(), start)
			}
			b.Run("look/"+m.String(), func(b *testing.B) {
				for b.Loop() {
					m.Look(&s, start)
				}
			})
			b.Run("take/"+m.String(), func(b *testing.B) {
				id := throttle.NewID()
				for i := int64(0); b.Loop(); i++ {
					id[i%8] ^= byte(i)
					m.Take(&s, id, start+i*60)
				}
			})
		}
	}
}
