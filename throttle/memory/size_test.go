package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What the documentation of package meter says of memory, and a tenth for luck.
func TestBytesOfAKey(t *testing.T) {
	hour := throttle.Tier{Name: "hour", Limit: 60, Window: 3_600_000}
	fixed, err1 := meter.NewFixedWindow(hour)
	sliding, err2 := meter.NewSlidingWindow(hour, 0)
	token, err3 := meter.NewTokenBucket(hour, 0)
	leaky, err4 := meter.NewLeakyBucket(hour, 59)
	policy, err5 := throttle.NewPolicy(hour)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
	clock := throttletest.NewClock(start)
	o := memory.Options{Now: clock.Now}
	count := func(m meter.Meter) func() throttle.Limiter {
		return func() throttle.Limiter { return memory.New(m, o) }
	}
	for _, tt := range []struct {
		name       string
		open       func() throttle.Limiter
		apart      int64 // milliseconds between one key's sends
		one, sixty uint64
	}{
		{"tiers", func() throttle.Limiter { return memory.NewTiers(policy, o) }, 0, 122, 1140},
		{"fixed window", count(fixed), 0, 188, 1203},
		{"sliding window", count(sliding), 59_999, 197, 1715},
		{"token bucket", count(token), 0, 205, 1219},
		{"leaky bucket", count(leaky), 0, 205, 1219},
	} {
		for sends, want := range map[int]uint64{1: tt.one, 60: tt.sixty} {
			clock.Set(start - start%hour.Window)
			before := heap()
			l := tt.open()
			keys := 10_000 / (1 + sends/12)
			for range sends {
				clock.Add(tt.apart)
				for i := range keys {
					if v, _ := take(t, l, fmt.Sprintf("198.51.%d.%d", i/256, i%256)); !v.Allowed {
						t.Fatalf("%s: key %d is denied", tt.name, i)
					}
				}
			}
			got := (heap() - before) / uint64(keys)
			t.Logf("%s, %d sends: %d bytes a key", tt.name, sends, got)
			if got > want+want/10 {
				t.Errorf("%s, %d sends: %d bytes a key, want %d", tt.name, sends, got, want)
			}
			runtime.KeepAlive(l)
		}
	}
}
