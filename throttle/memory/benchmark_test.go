package memory_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// One call on the machine's clock, over many keys: nearly all are admitted, or nearly
// all denied.
func BenchmarkTake(b *testing.B) {
	for _, limit := range []int{1, 1_000_000_000} {
		tier := throttle.Tier{Name: "day", Limit: limit, Window: 86_400_000}
		fixed, err1 := meter.NewFixedWindow(tier)
		sliding, err2 := meter.NewSlidingWindow(tier, 24)
		token, err3 := meter.NewTokenBucket(throttle.Tier{Name: "hour", Limit: min(limit, 1_000_000), Window: 3_600_000}, 0)
		if err1 != nil || err2 != nil || err3 != nil {
			b.Fatal(err1, err2, err3)
		}
		for _, m := range []meter.Meter{fixed, sliding, token} {
			b.Run(m.String(), func(b *testing.B) { takes(b, memory.New(m, memory.Options{})) })
		}
	}
	b.Run("tiers "+throttle.DefaultPolicy().String(), func(b *testing.B) {
		takes(b, memory.NewTiers(throttle.DefaultPolicy(), memory.Options{}))
	})
}

func takes(b *testing.B, l throttle.Limiter) {
	const many = 4096
	keys := make([]string, many)
	for i := range keys {
		keys[i] = "198.51.100." + strconv.Itoa(i)
	}
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := l.Take(ctx, keys[i%many], throttle.NewID()); err != nil {
				b.Error(err)
			}
		}
	})
}
