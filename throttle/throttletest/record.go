package throttletest

import (
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// record is what every home promises of admissions that were made elsewhere.
func record(t *testing.T, open Open) {
	t.Run("keeps times in any order", func(t *testing.T) {
		k := tiersKey(t, open, "minute=2/60s,hour=9/1h")
		k.add(20_000)
		taken := k.admit()
		k.add(20_000)
		want := throttle.History{taken}
		for _, at := range []int64{start + 10_000, k.now(), start, start + 30_000} {
			want = append(want, k.recordAt(at))
		}
		slices.SortFunc(want, func(a, b throttle.Admission) int { return int(a.At - b.At) })
		if h := k.history(); !slices.Equal(h, want) {
			t.Fatalf("history\n got %v\nwant %v", h, want)
		}
		// Five in a minute of two: it admits when all but one have left.
		k.expect(k.peek(), "refused by minute for 50000 [minute 0 50000 50000] [hour 4 0 3560000]")
		k.set(start + 89_999)
		k.refuse()
		k.set(start + 90_000)
		k.admit()
	})
	t.Run("is idempotent by id", func(t *testing.T) {
		k := tiersKey(t, open, "minute=2/60s,hour=3/1h")
		taken, recorded := k.admit(), throttle.Admission{ID: throttle.NewID(), At: start + 1000}
		k.add(5000)
		for range 3 {
			k.record(throttle.Admission{ID: taken.ID, At: start + 2000}, recorded)
			k.record(throttle.Admission{ID: recorded.ID, At: k.now()})
		}
		if h := k.history(); !slices.Equal(h, throttle.History{taken, recorded}) {
			t.Fatalf("history %v, want %v and %v", h, taken, recorded)
		}
		if v := k.take(recorded.ID); !v.Allowed || v.At != recorded.At {
			t.Fatalf("take of a recorded id: %s", spell(v))
		}
		if !k.release(recorded) || k.release(recorded) {
			t.Fatal("what was recorded was not given back, or twice")
		}
	})
	t.Run("what has left or lies ahead", func(t *testing.T) {
		k := tiersKey(t, open, "minute=2/60s,hour=3/1h")
		for _, at := range []int64{start - 3_600_000, start - 86_400_000, 0, -1, -1 << 62} {
			if k.release(k.recordAt(at)) {
				t.Fatalf("a send of %d was recorded, which had left", at)
			}
		}
		k.recordAt(start - 3_600_000 + 1)
		k.admit()
		k.recordAt(start + 86_400_000)
		if h := k.history(); len(h) != 3 || h.Newest() != start {
			t.Fatalf("history %v, want a time ahead of the clock to count as the clock", h)
		}
	})
	t.Run("the newest are kept", func(t *testing.T) {
		k := tiersKey(t, open, "hour=1000/1h")
		k.add(2000)
		most := Policy(t, "hour=1000/1h").Kept()
		var all []throttle.Admission
		for i := range int64(most + 5) {
			all = append(all, throttle.Admission{ID: throttle.NewID(), At: start + i})
		}
		k.record(all...)
		k.recordAt(start) // older than all that are kept
		if h := k.history(); !slices.Equal(h, throttle.History(all[5:])) {
			t.Fatalf("%d are kept, from %v to %v", len(h), h[0], h[len(h)-1])
		}
		if v := k.refuse(); v.RetryAt != all[5].At+3_600_000 {
			t.Fatalf("refused until %d", v.RetryAt-start)
		}
	})
}
