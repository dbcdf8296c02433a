package throttle_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// sent is a send that was admitted and not released.
type sent struct {
	throttle.Admission
	leaves int64
}

// Whatever is released, and however the clock moves, the sends that remain never exceed what
// each algorithm promises at the edge, by the moments at which they are on record. Of a Policy this
// holds where the clock does not step back over a release.
func TestAlgorithms_AnyHistory_NeverAdmitMoreThanPromised(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tier := throttle.Tier{Name: "t", Limit: 3, Window: time.Second}
	for name, exceeded := range map[string]func([]sent) bool{
		"tiers":          func(all []sent) bool { return crowded(all, 3, 1000) || crowded(all, 5, 3000) },
		"fixed window":   func(all []sent) bool { return crowdedBetween(all, 3, 1000) },
		"sliding window": func(all []sent) bool { return crowded(all, 3, 1000) },
		"token bucket":   func(all []sent) bool { return overflows(all, 3, tier) },
		"leaky bucket":   func(all []sent) bool { return overflows(all, 3, tier) || tooClose(all, tier) },
	} {
		t.Run(name, func(t *testing.T) {
			a := throttletest.Counters(t, tier.String())[name]
			if name == "tiers" {
				a = throttletest.Policy(t, "t=3/1s,u=5/3s")
			}
			for range throttletest.Length(2_000, 100_000) {
				if all := randomSends(t, a, random); exceeded(all) {
					t.Fatalf("%s admitted %v", a, all)
				}
			}
		})
	}
}

// randomSends takes and releases for a while, under a clock that also steps back.
func randomSends(t *testing.T, a throttle.Algorithm, random *rand.Rand) []sent {
	var state []byte
	var all []sent
	_, exact := a.(throttle.Policy)
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
			at := all[i].At
			twins := slices.IndexFunc(all, func(s sent) bool { return s.At == at && s != all[i] }) >= 0
			if _, leaky := a.(throttle.LeakyBucket); leaky && twins {
				continue // any of these is taken for the newest
			}
			next, released := a.Release(state, all[i].Admission)
			again, _ := a.Release(state, all[i].Admission)
			same(t, a, next, again)
			if state = next; released {
				all = slices.Delete(all, i, i+1)
			}
			continue
		}
		one := throttle.Admission{ID: throttle.NewID(), At: now}
		next, v := a.Take(state, one)
		again, _ := a.Take(state, one)
		same(t, a, next, again)
		if state = next; v.Allowed {
			one.At = v.At
			all = append(all, sent{one, v.At + v.Delay})
		}
	}
	return all
}

// same expects a step that is repeated on one state to do the same.
func same(t *testing.T, a throttle.Algorithm, next, again []byte) {
	t.Helper()
	if string(next) != string(again) {
		t.Fatalf("%s: a step led to %x and then to %x", a, next, again)
	}
}

// crowded reports whether some window of this length holds more than limit sends.
func crowded(all []sent, limit int, window int64) bool {
	times := timesOf(all)
	for i := limit; i < len(times); i++ {
		if times[i]-times[i-limit] < window {
			return true
		}
	}
	return false
}

// crowdedBetween reports whether a full window of the clock holds more than limit sends.
func crowdedBetween(all []sent, limit int, window int64) bool {
	counts := map[int64]int{}
	for _, s := range all {
		if counts[s.At/window]++; counts[s.At/window] > limit {
			return true
		}
	}
	return false
}

// overflows reports whether a bucket with room for so many sends, that drains at the tier's
// rate, could not have held them.
func overflows(all []sent, room int64, tier throttle.Tier) bool {
	level, at := int64(0), int64(0)
	for _, now := range timesOf(all) {
		level = max(0, level-(now-at)*int64(tier.Limit)) + tier.Window.Milliseconds()
		if at = now; level > room*tier.Window.Milliseconds() {
			return true
		}
	}
	return false
}

// tooClose reports whether two sends leave closer than the rate, but for rounding to whole
// milliseconds.
func tooClose(all []sent, tier throttle.Tier) bool {
	var leaves []int64
	for _, s := range all {
		leaves = append(leaves, s.leaves)
	}
	slices.Sort(leaves)
	for i := 1; i < len(leaves); i++ {
		if leaves[i]-leaves[i-1] < tier.Window.Milliseconds()/int64(tier.Limit) {
			return true
		}
	}
	return false
}

func timesOf(all []sent) (times []int64) {
	for _, s := range all {
		times = append(times, s.At)
	}
	slices.Sort(times)
	return times
}
