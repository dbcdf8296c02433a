package meter_test

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// buckets are one of each kind, with room for so many sends.
func buckets(limit, room int, window int64) []meter.Meter {
	return []meter.Meter{
		must(meter.NewTokenBucket(tier(limit, window), room)),
		must(meter.NewLeakyBucket(tier(limit, window), room-1)),
	}
}

// takes admits so many sends at once.
func takes(t *testing.T, m meter.Meter, s *meter.State, n int, now int64) (ids []throttle.ID) {
	t.Helper()
	for range n {
		id := throttle.NewID()
		if v, changed := m.Take(s, id, now); !v.Allowed || !changed {
			t.Fatalf("%s: %s, changed %v", m, spell(v), changed)
		}
		ids = append(ids, id)
	}
	return ids
}

// Whatever the rate was at which the sends came, one that is given back is one: what is
// in the bucket becomes less by that, and by no more.
func TestReleaseUnderAChangedRate(t *testing.T) {
	slow, fast := buckets(1, 60, minute), buckets(60, 60, minute)
	for _, tt := range []struct {
		name          string
		before, after []meter.Meter
		first         int // sends at the start
		pause         int64
		then          int   // sends after it
		left          []int // after each release, the newest first
	}{
		// 60 sends less 59/60 of one are in it.
		{"faster", slow, fast, 59, minute - 1000, 1, []int{0, 1, 2, 3}},
		// All but ten of the first have drained, and at the slower rate none would have.
		{"slower", fast, slow, 60, 50_000, 5, []int{45, 46, 47, 48}},
		// Of the first little is left, and all of that is given back.
		{"slower, and nearly empty", fast, slow, 10, 9500, 1, []int{58, 59, 60}},
	} {
		for i := range tt.before {
			t.Run(fmt.Sprint(tt.name, "/", tt.after[i]), func(t *testing.T) {
				var s meter.State
				ids := takes(t, tt.before[i], &s, tt.first, start)
				ids = append(ids, takes(t, tt.before[i], &s, tt.then, start+tt.pause)...)
				for n, want := range tt.left {
					if got := tt.after[i].Look(&s, start+tt.pause).Remaining; int(got) != want {
						t.Fatalf("%d left after %d releases, want %d", got, n, want)
					}
					if id := ids[len(ids)-1-n]; !tt.after[i].Release(&s, id, start+tt.pause) && n < len(tt.left)-1 {
						t.Fatalf("release %d: nothing was given back", n)
					}
				}
				for _, id := range ids { // and now all others, the oldest first
					tt.after[i].Release(&s, id, start+tt.pause)
				}
				if !same(s, meter.State{}) {
					t.Errorf("all are given back, and %+v is left", s)
				}
			})
		}
	}
}

// The state is then as if the send had never been there, to the last number in it.
func TestTokenBucketReleaseLeavesTheStateOfTheOthers(t *testing.T) {
	m := buckets(1, 5, minute)[0]
	var s, other meter.State
	first := takes(t, m, &s, 1, start)[0]
	second := takes(t, m, &s, 1, start+1000)[0]
	m.Take(&other, second, start+1000)
	if !m.Release(&s, first, start+1000) || !same(s, other) {
		t.Errorf("%+v, want %+v", s, other)
	}
}

// Not only the newest: any send that is on record is given back as one.
func TestReleaseOfTheOldestUnderAChangedRate(t *testing.T) {
	slow, fast := buckets(1, 60, minute)[0], buckets(60, 60, minute)[0]
	for _, tt := range []struct{ before, after meter.Meter }{{slow, fast}, {fast, slow}} {
		var s meter.State
		ids, now := takes(t, tt.before, &s, 59, start), start+50_000
		takes(t, tt.before, &s, 1, now)
		left := tt.after.Look(&s, now).Remaining
		if !tt.after.Release(&s, ids[0], now) {
			t.Fatal("nothing was given back")
		}
		if got := tt.after.Look(&s, now).Remaining; got != left+1 {
			t.Errorf("from %s to %s: %d left after a release, %d before", tt.before, tt.after, got, left)
		}
	}
}

// The sends can add up to what is in the bucket, only as of another moment: that is no
// sign of the same rate.
func TestReleaseWhereARateSeemsUnchanged(t *testing.T) {
	slow, fast := buckets(10, 9, 1000)[0], buckets(20, 9, 1000)[0]
	var s meter.State
	takes(t, slow, &s, 2, start)
	second := takes(t, slow, &s, 1, start+50)[0]
	third := takes(t, slow, &s, 1, start+100)[0]
	for i, id := range []throttle.ID{third, second} {
		if !fast.Release(&s, id, start+100) || fast.Used(&s, start+100) != 2-i {
			t.Fatalf("after %d releases %d are in it", i+1, fast.Used(&s, start+100))
		}
	}
}

// What was admitted after the rate had changed leaves no trace either.
func TestReleaseOfANewcomerUnderAChangedRate(t *testing.T) {
	slow, fast := buckets(1, 60, minute), buckets(60, 60, minute)
	for i := range slow {
		for _, tt := range []struct{ before, after meter.Meter }{{slow[i], fast[i]}, {fast[i], slow[i]}} {
			var s meter.State
			takes(t, tt.before, &s, 30, start)
			now := start + minute/4
			before := spell(tt.after.Look(&s, now))
			id := takes(t, tt.after, &s, 1, now)[0]
			if !tt.after.Release(&s, id, now) || spell(tt.after.Look(&s, now)) != before {
				t.Errorf("from %s to %s: %s after a send came and went, %s before", tt.before, tt.after, spell(tt.after.Look(&s, now)), before)
			}
		}
	}
}

// All that were admitted are given back, in whatever order: then the queue is empty, and
// nobody's turn has moved meanwhile.
func TestLeakyBucketGivesAllBack(t *testing.T) {
	const room = 51
	m := must(meter.NewLeakyBucket(tier(14, 1000), room-1))
	for name, order := range map[string]func(i int) int{
		"the oldest first": func(i int) int { return i },
		"the newest first": func(i int) int { return room - 1 - i },
		"here and there":   func(i int) int { return i * 20 % room },
	} {
		t.Run(name, func(t *testing.T) {
			var s meter.State
			ids := takes(t, m, &s, room, start)
			turns := map[throttle.ID]int64{}
			for _, id := range ids {
				v, _ := m.Take(&s, id, start)
				turns[id] = v.Delay
			}
			for i := range room {
				id := ids[order(i)]
				if !m.Release(&s, id, start) || m.Release(&s, id, start) {
					t.Fatal("not given back, or twice")
				}
				if delete(turns, id); m.Release(&s, throttle.ID{}, start) {
					t.Fatal("what is given back already was given back by no id at all")
				}
				for other, turn := range turns {
					if v, changed := m.Take(&s, other, start); changed || v.Delay != turn {
						t.Fatalf("after %d releases a turn in %d ms is in %d ms, changed %v", i+1, turn, v.Delay, changed)
					}
				}
			}
			if !same(s, meter.State{}) {
				t.Errorf("all are given back, and %+v is left", s)
			}
		})
	}
}

// A send from the middle leaves its turn empty until those behind it have gone.
func TestLeakyBucketReleaseInTheMiddle(t *testing.T) {
	// One leaves each second.
	walk(t, must(meter.NewLeakyBucket(tier(1, 1000), 3)), []step{
		{0, "take a", "yes, 3 left"},
		{0, "take b", "yes in 1000, 2 left"},
		{0, "take c", "yes in 2000, 1 left"},
		{0, "take d", "yes in 3000, 0 left for 1000"},
		{0, "release b", "true"},
		{0, "release b", "false"},
		{0, "take e", "no, 0 left for 1000"},
		{0, "take c", "yes in 2000, 0 left for 1000, on record"},
		{0, "release c", "true"},
		{0, "take d", "yes in 3000, 0 left for 1000, on record"},
		{0, "release d", "true"}, // and with it what c and b had left empty
		{0, "look", "yes in 1000, 3 left"},
		{0, "take b", "yes in 1000, 2 left"}, // given back, it was not on record any more
		{1500, "release a", "true"},          // its turn is long over
		{1500, "look", "yes in 500, 3 left"},
		{2000, "release b", "false"},
		{2000, "used", "0"},
	})
}

// However far the clock has stepped back, nobody is held for longer than the queue takes.
func TestLeakyBucketDelayIsNeverLongerThanTheQueue(t *testing.T) {
	m := must(meter.NewLeakyBucket(tier(3, 1000), 2))
	for _, back := range []int64{0, 1, 1000, 24 * 60 * minute, start} {
		var s meter.State
		var ids []throttle.ID
		turns := []int64{0, 334, 667}
		for i, want := range turns {
			look := m.Look(&s, start-int64(i)*back/2)
			id := takes(t, m, &s, 1, start-int64(i)*back/2)[0]
			again, _ := m.Take(&s, id, start-back)
			if look.Delay != want || again.Delay != want {
				t.Errorf("%d ms back, send %d: looked %d ms, taken again %d ms, want %d", back, i, look.Delay, again.Delay, want)
			}
			ids = append(ids, id)
		}
		for i, id := range ids {
			if v, _ := m.Take(&s, id, start-back); v.Delay != turns[i] {
				t.Errorf("%d ms back, with all in the queue send %d waits %d ms, want %d", back, i, v.Delay, turns[i])
			}
		}
	}
}

// A send that waits since before the rate was changed waits for what is before it at most.
func TestLeakyBucketDelayAtAnotherRate(t *testing.T) {
	var s meter.State
	slow, fast := must(meter.NewLeakyBucket(tier(1, 1000), 9)), must(meter.NewLeakyBucket(tier(10, 1000), 9))
	takes(t, fast, &s, 10, start)
	last := takes(t, fast, &s, 8, start+800)[7]
	if v, _ := slow.Take(&s, last, start+800); v.Delay != 9000 {
		t.Errorf("behind nine, one of which leaves each second, it waits %d ms", v.Delay)
	}
}

// A place in the queue that was given back is free with all behind it, however many came after.
func TestAVacantPlaceBeforeOthers(t *testing.T) {
	m := must(meter.NewLeakyBucket(tier(9, minute), 8))
	var s meter.State
	m.Take(&s, idOf("a"), start)
	m.Take(&s, idOf("b"), start)
	m.Release(&s, idOf("a"), start)
	m.Take(&s, idOf("c"), start)
	for _, name := range []string{"c", "b"} {
		if !m.Release(&s, idOf(name), start) {
			t.Errorf("%s is not given back", name)
		}
	}
	if n := m.Used(&s, start); n != 0 {
		t.Errorf("%d count when all are given back", n)
	}
}
