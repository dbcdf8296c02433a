package meter_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

const minute = int64(60_000)

func TestNumbersThatCannotBeRight(t *testing.T) {
	type numbers struct {
		tier  throttle.Tier
		extra int
	}
	fixed := func(n numbers) error { _, err := meter.NewFixedWindow(n.tier); return err }
	sliding := func(n numbers) error { _, err := meter.NewSlidingWindow(n.tier, n.extra); return err }
	token := func(n numbers) error { _, err := meter.NewTokenBucket(n.tier, n.extra); return err }
	leaky := func(n numbers) error { _, err := meter.NewLeakyBucket(n.tier, n.extra); return err }
	everywhere := []func(numbers) error{fixed, sliding, token, leaky}
	tests := []struct {
		make []func(numbers) error
		n    numbers
		want string
	}{
		{everywhere, numbers{throttle.Tier{Limit: 1, Window: 1}, 0}, `tier "": a name has at least one letter`},
		{everywhere, numbers{throttle.Tier{Name: "Some", Limit: 1, Window: 1}, 0}, `tier "Some": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{everywhere, numbers{tier(-1, minute), 1}, "tier some: the limit must be between 1 and 1000000000, not -1"},
		{everywhere[:2], numbers{tier(0, minute), 1}, "tier some: the limit must be between 1 and 1000000000, not 0"},
		{everywhere, numbers{tier(meter.MaxLimit+1, minute), 1}, "tier some: the limit must be between 1 and 1000000000, not 1000000001"},
		{everywhere, numbers{tier(1, 0), 1}, "tier some: the window must be between 1ms and ten years"},
		{everywhere, numbers{tier(1, math.MinInt64), 1}, "tier some: the window must be between 1ms and ten years"},
		{everywhere, numbers{tier(1, throttle.MaxWindow+1), 1}, "tier some: the window must be between 1ms and ten years"},
		{everywhere, numbers{tier(1, math.MaxInt64), 1}, "tier some: the window must be between 1ms and ten years"},
		{everywhere[1:2], numbers{tier(1, minute), -1}, "tier some: a window has between 1 and 1000 parts, not -1"},
		{everywhere[1:2], numbers{tier(1, minute), 1001}, "tier some: a window has between 1 and 1000 parts, not 1001"},
		{everywhere[2:3], numbers{tier(1, minute), -1}, "tier some: there must be room for 1 to 1000000000 sends, not -1"},
		{everywhere[2:3], numbers{tier(1, minute), meter.MaxLimit + 1}, "tier some: there must be room for 1 to 1000000000 sends, not 1000000001"},
		{everywhere[3:], numbers{tier(1, minute), -1}, "tier some: a queue has room for 0 to 999999999 sends, not -1"},
		{everywhere[3:], numbers{tier(1, minute), meter.MaxLimit}, "tier some: a queue has room for 0 to 999999999 sends, not 1000000000"},
		{everywhere[3:], numbers{tier(1, minute), math.MaxInt}, "tier some: a queue has room for 0 to 999999999 sends, not " + strconv.Itoa(math.MaxInt)},
		{everywhere[2:], numbers{tier(1, throttle.MaxWindow), 20_000}, "tier some: the window is too long for so many sends"},
		{everywhere[2:], numbers{tier(meter.MaxLimit, throttle.MaxWindow), meter.MaxLimit - 1}, "tier some: the window is too long for so many sends"},
	}
	for _, tt := range tests {
		for i, make := range tt.make {
			if err := make(tt.n); err == nil || err.Error() != tt.want {
				t.Errorf("%d of %v, %d:\n got %v\nwant %s", i, tt.n.tier, tt.n.extra, err, tt.want)
			}
		}
	}
}

func TestTexts(t *testing.T) {
	tests := []struct {
		m          meter.Meter
		text, form string
		quota      string // what the verdicts speak of
	}{
		{must(meter.NewFixedWindow(tier(50_000, 24*60*minute))), "fixed-window some=50000/24h", "fixed-86400000", "some=50000/24h"},
		{must(meter.NewSlidingWindow(tier(60, minute), 0)), "sliding-window some=60/60s in 60 parts", "sliding-60000-1000", "some=60/60s"},
		{must(meter.NewSlidingWindow(tier(60, minute), 7)), "sliding-window some=60/60s in 7 parts", "sliding-60000-8572", "some=60/60s"},
		{must(meter.NewSlidingWindow(tier(60, 10), 1000)), "sliding-window some=60/10ms in 1000 parts", "sliding-10-1", "some=60/10ms"},
		{must(meter.NewTokenBucket(tier(60, minute), 0)), "token-bucket some=60/60s, bursts of 60", "bucket-60000", "some=60/60s"},
		{must(meter.NewTokenBucket(tier(60, minute), 10)), "token-bucket some=60/60s, bursts of 10", "bucket-60000", "some=10/10s"},
		{must(meter.NewTokenBucket(tier(3, 1000), 2)), "token-bucket some=3/1s, bursts of 2", "bucket-1000", "some=2/667ms"},
		{must(meter.NewLeakyBucket(tier(60, minute), 0)), "leaky-bucket some=60/60s, a queue of 0", "queue-60000", "some=1/1s"},
		{must(meter.NewLeakyBucket(tier(60, minute), 9)), "leaky-bucket some=60/60s, a queue of 9", "queue-60000", "some=10/10s"},
	}
	for _, tt := range tests {
		if tt.m.String() != tt.text || tt.m.Form() != tt.form {
			t.Errorf("got  %s, %s\nwant %s, %s", tt.m, tt.m.Form(), tt.text, tt.form)
		}
		if quota := tt.m.Quota(); quota.String() != tt.quota {
			t.Errorf("%s: verdicts speak of %s, want %s", tt.m, quota, tt.quota)
		}
		if tt.m.Tier().Name != "some" {
			t.Errorf("%s: its tier is %s", tt.m, tt.m.Tier())
		}
	}
}

func TestReserving(t *testing.T) {
	for _, m := range []meter.Meter{
		must(meter.NewFixedWindow(tier(5, minute))), must(meter.NewSlidingWindow(tier(5, minute), 0)),
		must(meter.NewTokenBucket(tier(9, minute), 5)), must(meter.NewLeakyBucket(tier(9, minute), 4)),
	} {
		for n, want := range map[int]string{-1: "tier some: -1 cannot be kept back of 5", 5: "tier some: 5 cannot be kept back of 5"} {
			if _, err := m.Reserving(n); err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", m, err, want)
			}
		}
		for n := range 5 {
			careful, err := m.Reserving(n)
			if err != nil {
				t.Fatal(err)
			}
			var s meter.State
			admitted := 0
			for i := range 9 {
				if v, _ := careful.Take(&s, throttle.NewID(), start); v.Allowed {
					admitted = i + 1
				}
			}
			if admitted != 5-n || m.Used(&s, start) != 5-n {
				t.Errorf("%s, %d kept back: %d admitted and %d on record", m, n, admitted, m.Used(&s, start))
			}
		}
	}
}

func TestHeld(t *testing.T) {
	type holder interface {
		meter.Meter
		Held() int
	}
	for _, tt := range []struct {
		m    meter.Meter
		want int
	}{
		{must(meter.NewFixedWindow(tier(3, minute))), 3},
		{must(meter.NewFixedWindow(tier(3000, minute))), meter.MaxHeld},
		{must(meter.NewSlidingWindow(tier(1024, minute), 0)), 1024},
		{must(meter.NewSlidingWindow(tier(1025, minute), 0)), meter.MaxHeld},
		{must(meter.NewTokenBucket(tier(3000, minute), 3)), 3},
		{must(meter.NewLeakyBucket(tier(3000, minute), 3)), 4},
		{must(meter.NewLeakyBucket(tier(3, minute), 3000)), meter.MaxHeld},
	} {
		if got := tt.m.(holder).Held(); got != tt.want {
			t.Errorf("%s remembers %d, want %d", tt.m, got, tt.want)
		}
		var s meter.State
		for range 2 * tt.want {
			tt.m.Take(&s, throttle.NewID(), start)
		}
		if len(s.Held) > tt.want {
			t.Errorf("%s remembers %d, said %d", tt.m, len(s.Held), tt.want)
		}
	}
}

// A window would forget what a longer one still counts, and a part is its own measure: so
// those that differ in either cannot use each other's states, and all others can.
func TestForms(t *testing.T) {
	sliding := func(limit int, window int64, parts int) meter.Meter {
		return must(meter.NewSlidingWindow(tier(limit, window), parts))
	}
	for _, tt := range []struct {
		a, b meter.Meter
		one  bool
	}{
		{sliding(60, minute, 60), sliding(6, minute, 60), true},
		{sliding(60, 100, 99), sliding(60, 100, 51), true}, // of two milliseconds each
		{sliding(60, minute, 60), sliding(120, 2*minute, 120), false},
		{sliding(60, minute, 60), sliding(60, minute, 30), false},
		{must(meter.NewFixedWindow(tier(1, minute))), must(meter.NewFixedWindow(tier(2, minute))), true},
		{must(meter.NewFixedWindow(tier(1, minute))), must(meter.NewFixedWindow(tier(1, 2*minute))), false},
		{buckets(1, 5, minute)[0], buckets(2, 9, minute)[0], true},
		{buckets(1, 5, minute)[0], buckets(2, 5, 2*minute)[0], false},
		{buckets(1, 5, minute)[1], buckets(2, 9, minute)[1], true},
		{buckets(1, 5, minute)[1], buckets(1, 5, minute)[0], false},
	} {
		if (tt.a.Form() == tt.b.Form()) != tt.one {
			t.Errorf("%s is %s, %s is %s", tt.a, tt.a.Form(), tt.b, tt.b.Form())
		}
	}
}

func TestUsable(t *testing.T) {
	for _, m := range []meter.Meter{nil, meter.FixedWindow{}, meter.SlidingWindow{}, meter.TokenBucket{}, meter.LeakyBucket{}} {
		if meter.Usable(m) {
			t.Errorf("%T: nothing is usable", m)
		}
	}
	for _, m := range append(buckets(1, 1, 1), must(meter.NewFixedWindow(tier(1, 1))), must(meter.NewSlidingWindow(tier(1, 1), 1))) {
		if !meter.Usable(m) {
			t.Errorf("%s is not usable", m)
		}
	}
}

// Who logs what a New function returned beside its error does no harm.
func TestZeroMetersCanBePrinted(t *testing.T) {
	for _, m := range []meter.Meter{meter.FixedWindow{}, meter.SlidingWindow{}, meter.TokenBucket{}, meter.LeakyBucket{}} {
		if got := m.String(); got != "no meter" {
			t.Errorf("%T is %q", m, got)
		}
	}
}
