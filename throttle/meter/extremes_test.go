package meter_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// farthest is the last moment that Redis's scripts can count to exactly.
const farthest = int64(1<<53) - 1

// FuzzExtremes takes what construction accepts to its limits: whatever the numbers, no
// verdict is out of range and no promise is broken.
func FuzzExtremes(f *testing.F) {
	for _, limit := range []int{1, 2, 1000, meter.MaxLimit} {
		for _, window := range []int64{1, 999, 86_400_000, throttle.MaxWindow} {
			for _, extra := range []int{0, 1, 59, 1000, 14_000, meter.MaxLimit - 1} {
				f.Add(limit, window, extra, start, window/2)
				f.Add(limit, window, extra, farthest-3*throttle.MaxWindow, window-1)
				f.Add(limit, window, extra, int64(0), int64(1))
			}
		}
	}
	f.Fuzz(func(t *testing.T, limit int, window int64, extra int, now, step int64) {
		if now < 0 || now > farthest-3*throttle.MaxWindow || step < 0 || step > throttle.MaxWindow {
			return // no clock says so
		}
		made := func(m meter.Meter, err error) {
			if err == nil {
				keepsItsPromises(t, m, now, step)
			}
		}
		fixed, err := meter.NewFixedWindow(tier(limit, window))
		made(fixed, err)
		sliding, err := meter.NewSlidingWindow(tier(limit, window), extra)
		made(sliding, err)
		token, err := meter.NewTokenBucket(tier(limit, window), extra)
		made(token, err)
		leaky, err := meter.NewLeakyBucket(tier(limit, window), extra)
		made(leaky, err)
	})
}

func keepsItsPromises(t *testing.T, m meter.Meter, now, step int64) {
	var s meter.State
	for range 8 {
		v, _ := m.Take(&s, throttle.NewID(), now)
		most := m.Quota().Limit
		if v.Remaining < 0 || int(v.Remaining) > most || v.Wait < 0 || v.Delay < 0 || (v.Wait > 0) != (v.Remaining == 0) {
			t.Fatalf("%s at %d: %+v", m, now, v)
		}
		if used := m.Used(&s, now); used < 0 || used > most || s.Count < 0 {
			t.Fatalf("%s at %d: used %d, state %+v", m, now, used, s)
		}
		if until := until(v); v.Wait > 0 {
			if m.Look(&s, until-1).Allowed || !m.Look(&s, until).Allowed {
				t.Fatalf("%s at %d: told %d, and it is not so: %+v", m, now, until, s)
			}
		}
		if until := m.Expires(&s); m.Used(&s, until) != 0 || m.Used(&s, until-1) == 0 {
			t.Fatalf("%s at %d: does not expire at %d: %+v", m, now, until, s)
		}
		now += step
	}
}

// A bucket of the largest limit fills to the last send.
func TestFullToTheLast(t *testing.T) {
	for _, m := range []meter.Meter{
		must(meter.NewTokenBucket(tier(meter.MaxLimit, 4_000_000), 0)),
		must(meter.NewLeakyBucket(tier(meter.MaxLimit, 4_000_000), meter.MaxLimit-1)),
	} {
		var s meter.State
		m.Take(&s, throttle.NewID(), start)
		// All but two sends more, as a thousand million takes would leave it.
		s.Count += (meter.MaxLimit - 3) * m.Tier().Window
		for left := 1; left >= 0; left-- {
			if v, _ := m.Take(&s, throttle.NewID(), start); !v.Allowed || int(v.Remaining) != left {
				t.Fatalf("%s: %s, want %d left", m, spell(v), left)
			}
		}
		v, _ := m.Take(&s, throttle.NewID(), start)
		if v.Allowed || v.Wait != 1 || m.Used(&s, start) != meter.MaxLimit || m.Expires(&s) != start+4_000_000 {
			t.Fatalf("%s: %s, %d used, until %d", m, spell(v), m.Used(&s, start), m.Expires(&s))
		}
	}
}
