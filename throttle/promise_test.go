package throttle_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Whatever is released, and however the clock moves, the sends that remain never exceed what
// each algorithm promises at the edge, by the moments at which they are on record. Of a Policy this
// holds where the clock does not step back over a release.
func TestAlgorithms_AnyHistory_NeverAdmitMoreThanPromised(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tier := throttle.Tier{Name: "t", Limit: 3, Window: time.Second}
	for name, exceeded := range map[string]func(at, leaves []int64) bool{
		"tiers":          func(at, _ []int64) bool { return crowded(at, 3, 1000) || crowded(at, 5, 3000) },
		"fixed window":   func(at, _ []int64) bool { return crowdedBetween(at, 3, 1000) },
		"sliding window": func(at, _ []int64) bool { return crowded(at, 3, 1000) },
		"token bucket":   func(at, _ []int64) bool { return overflows(at, 3, tier) },
		"leaky bucket":   func(at, leaves []int64) bool { return overflows(at, 3, tier) || crowded(leaves, 1, 333) },
	} {
		t.Run(name, func(t *testing.T) {
			a := throttletest.Counters(t, tier.String())[name]
			if name == "tiers" {
				a = throttletest.Policy(t, "t=3/1s,u=5/3s")
			}
			for range throttletest.Length(2_000, 100_000) {
				var at, leaves []int64
				for sent, delay := range randomSends(a, random) {
					at, leaves = append(at, sent.At), append(leaves, sent.At+delay)
				}
				slices.Sort(at)
				slices.Sort(leaves)
				if exceeded(at, leaves) {
					t.Fatalf("%s admitted %v, which leave at %v", a, at, leaves)
				}
			}
		})
	}
}

// randomSends takes and releases for a while, under a clock that also steps back. What was admitted
// and not released is returned with its delay.
func randomSends(a throttle.Algorithm, random *rand.Rand) map[throttle.Admission]int64 {
	var state []byte
	var all []throttle.Admission
	delays := map[throttle.Admission]int64{}
	_, exact := a.(throttle.Policy)
	_, leaky := a.(throttle.LeakyBucket)
	stepsBack := !exact || random.IntN(2) == 0
	now := int64(1_000_000)
	for range 60 {
		switch random.IntN(4) {
		case 0:
			now += random.Int64N(200)
		case 1:
			if step := []int64{332, 333, 334, 999, 1000, -200, -1000}[random.IntN(7)]; step > 0 || stepsBack {
				now += step
			}
		}
		if len(all) > 0 && !(exact && stepsBack) && random.IntN(4) == 0 {
			i := len(all) - 1 - random.IntN(min(len(all), 4))
			one := all[i]
			twin := func(s throttle.Admission) bool { return s.At == one.At && s != one }
			if leaky && slices.ContainsFunc(all, twin) {
				continue // any of these is taken for the newest
			}
			next, released := a.Release(state, one)
			if state = next; released {
				all = slices.Delete(all, i, i+1)
				delete(delays, one)
			}
			continue
		}
		one := throttle.Admission{ID: throttle.NewID(), At: now}
		next, v := a.Take(state, one)
		if state = next; v.Allowed {
			one.At = v.At
			all, delays[one] = append(all, one), v.Delay
		}
	}
	return delays
}

// crowded reports whether some window of this length holds more than limit sends.
func crowded(times []int64, limit int, window int64) bool {
	for i := limit; i < len(times); i++ {
		if times[i]-times[i-limit] < window {
			return true
		}
	}
	return false
}

// crowdedBetween reports whether a full window of the clock holds more than limit sends.
func crowdedBetween(times []int64, limit int, window int64) bool {
	for i := limit; i < len(times); i++ {
		if times[i]/window == times[i-limit]/window {
			return true
		}
	}
	return false
}

// overflows reports whether a bucket with room for so many sends, that drains at the tier's
// rate, could not have held them.
func overflows(times []int64, room int64, tier throttle.Tier) bool {
	level, at := int64(0), int64(0)
	for _, now := range times {
		level = max(0, level-(now-at)*int64(tier.Limit)) + tier.Window.Milliseconds()
		if at = now; level > room*tier.Window.Milliseconds() {
			return true
		}
	}
	return false
}
