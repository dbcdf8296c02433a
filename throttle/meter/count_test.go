package meter_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

func TestCountStepByStep(t *testing.T) {
	walk(t, must(meter.NewFixedWindow(tier(3, 1000))), []step{
		{300, "count", "yes, 2 left"},
		{300, "take a", "yes, 1 left"},
		{400, "count", "yes, 0 left for 600"},
		{400, "count", "no, 0 left for 600"},
		{500, "release a", "true"},
		{500, "used", "2"},
		{999, "count", "yes, 0 left for 1"},
		{1000, "count", "yes, 2 left"},
	})
	walk(t, must(meter.NewSlidingWindow(tier(3, 1000), 10)), []step{
		{310, "count", "yes, 2 left"},
		{350, "take a", "yes, 1 left"},
		{420, "count", "yes, 0 left for 979"},
		{500, "release a", "true"},
		{500, "used", "2"},
		{500, "count", "yes, 0 left for 899"},
		{1398, "count", "no, 0 left for 1"},
		{1399, "count", "yes, 0 left for 100"},
	})
	walk(t, must(meter.NewTokenBucket(tier(3, 3000), 3)), []step{
		{0, "count", "yes, 2 left"},
		{0, "take a", "yes, 1 left"},
		{500, "count", "yes, 0 left for 500"},
		{999, "count", "no, 0 left for 1"},
		{1000, "count", "yes, 0 left for 1000"},
		{1000, "release a", "true"}, // and the two behind it are as if it had not been before them
		{1000, "used", "2"},
		{1000, "take a", "yes, 0 left for 1000"},
		{9000, "count", "yes, 2 left"},
	})
	walk(t, must(meter.NewLeakyBucket(tier(3, 3000), 2)), []step{
		{0, "count", "yes, 2 left"},
		{0, "take a", "yes in 1000, 1 left"},
		{0, "count", "yes in 2000, 0 left for 1000"},
		{0, "release a", "true"}, // the one behind it keeps its turn
		{0, "count", "no, 0 left for 1000"},
		{1000, "take b", "yes in 2000, 0 left for 1000"},
		{1000, "release b", "true"}, // and no turn of a send that was counted is free
		{1000, "used", "2"},
	})
}

// However many are counted, nothing is remembered of each, nor of those before that count no
// more.
func TestCountRemembersNothing(t *testing.T) {
	large := tier(1_000_000, 1000)
	for _, m := range []meter.Meter{
		must(meter.NewFixedWindow(large)), must(meter.NewSlidingWindow(large, 10)),
		must(meter.NewTokenBucket(large, 0)), must(meter.NewLeakyBucket(large, 100_000)),
	} {
		var s meter.State
		for range 5000 {
			m.Count(&s, start)
		}
		if len(s.Held) != 0 || len(s.Parts) > 1 || m.Used(&s, start) != 5000 {
			t.Errorf("%s: %d of 5000, %d remembered, %d parts", m, m.Used(&s, start), len(s.Held), len(s.Parts))
		}
		m.Take(&s, idOf("a"), start)
		if m.Count(&s, start+9000); len(s.Held) != 0 {
			t.Errorf("%s: %d that count no more are remembered", m, len(s.Held))
		}
	}
}

// What was counted behind a send that can be given back is remembered for as long as that is,
// and while there is room.
func TestCountsAreRememberedBehindOthers(t *testing.T) {
	large := tier(100_000, 100_000)
	for _, tt := range []struct {
		m     meter.Meter
		count int // when a and b are given back, of five
	}{
		{must(meter.NewTokenBucket(large, 0)), 3},
		{must(meter.NewLeakyBucket(large, 99_999)), 5}, // they keep their places in the queue
	} {
		m, s := tt.m, meter.State{}
		remembers := func(want int, when string) {
			t.Helper()
			if len(s.Held) != want {
				t.Errorf("%s: it remembers %d %s, want %d", m, len(s.Held), when, want)
			}
		}
		m.Count(&s, start)
		remembers(0, "behind nobody")
		m.Take(&s, idOf("a"), start)
		m.Count(&s, start)
		m.Take(&s, idOf("b"), start)
		m.Count(&s, start)
		remembers(4, "behind a")
		if !m.Release(&s, idOf("a"), start) || !m.Release(&s, idOf("b"), start) || m.Used(&s, start) != tt.count {
			t.Errorf("%s: %d count without a and b, want %d", m, m.Used(&s, start), tt.count)
		}
		m.Count(&s, start)
		remembers(0, "when a and b are given back")

		m.Take(&s, idOf("c"), start)
		for range meter.MaxHeld - 1 {
			m.Count(&s, start)
		}
		remembers(meter.MaxHeld, "behind c")
		if m.Count(&s, start); m.Release(&s, idOf("c"), start) {
			t.Errorf("%s: gave back c, behind which as many came as can be remembered", m)
		}
		remembers(0, "when c is forgotten")
	}
}

// What is told late of finds its place among sends that were only counted, and can be given back.
func TestRecordAmongCounts(t *testing.T) {
	for _, m := range []meter.Meter{must(meter.NewTokenBucket(tier(5, minute), 0)), must(meter.NewLeakyBucket(tier(5, minute), 4))} {
		for name, at := range map[string]int64{"before them": start + 4000, "after them": start + 6000} {
			var s meter.State
			m.Count(&s, start+5000)
			m.Count(&s, start+5000)
			if !meter.Record(m, &s, throttle.Admission{ID: idOf("a"), At: at}, start+8000) || m.Used(&s, start+8000) != 3 {
				t.Errorf("%s, %s: %d count, want 3", m, name, m.Used(&s, start+8000))
			}
			if !m.Release(&s, idOf("a"), start+8000) || m.Used(&s, start+8000) != 2 {
				t.Errorf("%s, %s: %d count without it, want 2", m, name, m.Used(&s, start+8000))
			}
		}
	}
}

// A full bucket has no room either for what is told late of at another rate than the sends had.
func TestRecordAtAnotherRate(t *testing.T) {
	before, after := must(meter.NewTokenBucket(tier(5, minute), 0)), must(meter.NewTokenBucket(tier(50, minute), 5))
	for sends, records := range map[int]bool{4: true, 5: false} {
		var s meter.State
		takes(t, before, &s, 1, start)
		takes(t, before, &s, sends-1, start+1)
		if got := meter.Record(after, &s, throttle.Admission{ID: idOf("late"), At: start}, start+5000); got != records {
			t.Errorf("behind %d: recorded %v", sends, got)
		}
	}
}

// A send that was counted is nobody's, however its id is written.
func TestWhatWasCountedCannotBeReleased(t *testing.T) {
	for _, m := range []meter.Meter{
		must(meter.NewFixedWindow(tier(9, minute))), must(meter.NewSlidingWindow(tier(9, minute), 0)),
		must(meter.NewTokenBucket(tier(9, minute), 0)), must(meter.NewLeakyBucket(tier(9, minute), 8)),
	} {
		var s meter.State
		m.Take(&s, idOf("a"), start)
		m.Count(&s, start)
		for id := range 256 {
			if m.Release(&s, throttle.ID{byte(id)}, start) {
				t.Errorf("%s: gave back %q", m, throttle.ID{byte(id)})
			}
		}
	}
}
