package meter_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A busy key's state is changed in place all the time, that of a store on disk is a clone
// at each step. Both know the same admissions, however many have come and gone.
func TestAStateInPlaceKnowsWhatAClonedOneDoes(t *testing.T) {
	for _, limit := range []int{64, 100, meter.MaxHeld, 3000} {
		for _, m := range []meter.Meter{
			must(meter.NewFixedWindow(tier(limit, minute))),
			must(meter.NewSlidingWindow(tier(limit, minute), 0)),
			must(meter.NewTokenBucket(tier(limit, minute), 0)),
			must(meter.NewLeakyBucket(tier(limit, minute), limit-1)),
		} {
			t.Run(m.String(), func(t *testing.T) { liveTwice(t, m) })
		}
	}
}

func liveTwice(t *testing.T, m meter.Meter) {
	const seed = 8
	limit := m.Tier().Limit
	random, now := rand.New(rand.NewPCG(seed, uint64(limit))), start
	var inPlace, cloned meter.State
	var ids []throttle.ID
	for step := range 1500 {
		now += random.Int64N(2 * minute / int64(limit))
		id := throttle.NewID()
		if len(ids) > 0 && random.IntN(3) == 0 {
			id = ids[max(0, len(ids)-1-random.IntN(limit))]
		}
		cloned = cloned.Clone()
		if random.IntN(4) == 0 {
			if got, want := m.Release(&inPlace, id, now), m.Release(&cloned, id, now); got != want {
				t.Fatalf("seed %d step %d: released %v, want %v", seed, step, got, want)
			}
		} else {
			got, changed := m.Take(&inPlace, id, now)
			want, altered := m.Take(&cloned, id, now)
			if got.Allowed != want.Allowed || got.Delay != want.Delay || changed != altered {
				t.Fatalf("seed %d step %d: %+v, changed %v, want %+v, %v", seed, step, got, changed, want, altered)
			}
			ids = append(ids, id)
		}
		if step%50 == 0 && !same(inPlace.Clone(), cloned.Clone()) {
			t.Fatalf("seed %d step %d:\n%+v, want\n%+v", seed, step, inPlace, cloned)
		}
	}
}

// However long a key is busy, its state grows no further.
func TestABusyStateStaysAsLargeAsItIs(t *testing.T) {
	for _, m := range []meter.Meter{
		must(meter.NewFixedWindow(tier(meter.MaxLimit, minute))),
		must(meter.NewSlidingWindow(tier(meter.MaxLimit, minute), 0)),
		must(meter.NewTokenBucket(tier(meter.MaxLimit, minute), 0)),
		must(meter.NewLeakyBucket(tier(meter.MaxLimit, minute), 1_000_000)),
	} {
		var s meter.State
		take := func() {
			if v, _ := m.Take(&s, throttle.NewID(), start); !v.Allowed {
				t.Fatalf("%s: %+v", m, v)
			}
		}
		for range 4 * meter.MaxHeld {
			take()
		}
		if allocs := testing.AllocsPerRun(10*meter.MaxHeld, take) * 10 * meter.MaxHeld; allocs != 0 {
			t.Errorf("%s: %v allocations", m, allocs)
		}
		if len(s.Held) != meter.MaxHeld || cap(s.Held) > 2*meter.MaxHeld {
			t.Errorf("%s: %d admissions in room for %d", m, len(s.Held), cap(s.Held))
		}
	}
}
