package memory_test

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A web server may use the memory of a request's texts again for the next.
func TestKeysAreCopied(t *testing.T) {
	for name, l := range limiters(t, 0, clocktest.New(start).Now) {
		t.Run(name, func(t *testing.T) {
			reused := []byte("192.0.2.1")
			key := unsafe.String(unsafe.SliceData(reused), len(reused))
			take(t, l, key)
			take(t, l, key)
			copy(reused, "198.51.10")
			if v, _ := take(t, l, "192.0.2.1"); v.Allowed {
				t.Error("a key was forgotten when its memory was used for another")
			}
			if v, _ := take(t, l, key); !v.Allowed {
				t.Error("a key has what was sent to the one whose memory it uses")
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	clock := clocktest.New(start)
	ctx, id := context.Background(), throttle.NewID()
	tier := throttle.Tier{Name: "minute", Limit: 3, Window: 60_000}
	fixed, err1 := meter.NewFixedWindow(tier)
	sliding, err2 := meter.NewSlidingWindow(tier, 0)
	token, err3 := meter.NewTokenBucket(tier, 0)
	leaky, err4 := meter.NewLeakyBucket(tier, 2)
	if err := fmt.Errorf("%v%v%v%v", err1, err2, err3, err4); err.Error() != "<nil><nil><nil><nil>" {
		t.Fatal(err)
	}
	policy, err := throttle.NewPolicy(tier)
	if err != nil {
		t.Fatal(err)
	}
	tiers := memory.NewTiers(policy, memory.Options{Now: clock.Now})
	all := map[string]throttle.Limiter{"tiers": tiers}
	for _, m := range []meter.Meter{fixed, sliding, token, leaky} {
		all[m.String()] = memory.New(m, memory.Options{Now: clock.Now})
	}
	for name, l := range all {
		for range 3 {
			take(t, l, "full")
		}
		denials := testing.AllocsPerRun(100, func() {
			clock.Add(-1) // when nothing is remembered of
			v, _ := l.Take(ctx, "full", id)
			w, _ := l.Take(ctx, "full", id)
			if v.Allowed || w.Allowed {
				t.Errorf("%s: allowed", name)
			}
			clock.Add(-1)
			v, _ = l.Peek(ctx, "full")
			w, _ = l.Peek(ctx, "full")
			_, _ = l.Peek(ctx, "unknown")
			if v.Allowed || w.Allowed {
				t.Errorf("%s: allowed", name)
			}
		})
		if denials != 0 {
			t.Errorf("%s: %v allocations for two denials and three peeks", name, denials)
		}
		clock.Add(1000)
		for range 200 { // until its slices have grown
			clock.Add(61_000 / 3)
			take(t, l, "full")
		}
		admission := testing.AllocsPerRun(100, func() {
			clock.Add(61_000 / 3)
			if v, err := l.Take(ctx, "full", throttle.NewID()); !v.Allowed {
				t.Errorf("%s: not allowed, %v", name, err)
			}
		})
		if admission != 0 {
			t.Errorf("%s: %v allocations for an admission, want less than one", name, admission)
		}
	}
}
