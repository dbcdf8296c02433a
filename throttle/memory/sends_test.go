package memory

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// The memory of a burst is given back when few of its sends count any more.
func TestABurstOfSendsLeavesNothing(t *testing.T) {
	for _, live := range []int{0, 1, 5} {
		var s sends
		for at := range int64(500) {
			s.add(s.history(), throttle.Admission{ID: throttle.NewID(), At: at})
		}
		burst := s.history()
		last := throttle.Admission{ID: throttle.NewID(), At: 500}
		s.add(burst[len(burst)-live:], last)
		got := s.history()
		if len(got) != live+1 || got[live] != last || live > 0 && got[0] != burst[len(burst)-live] {
			t.Errorf("%d of a burst and one more are %v", live, got)
		}
		if room := s.part().room; room > 8*(live+1) {
			t.Errorf("%d sends have room for %d", live+1, room)
		}
		if len(burst) != 500 || burst[499].At != 499 {
			t.Error("what was handed out has changed")
		}
	}
}

// However many sends are live, their ids are found and nearly no other is looked for.
func TestIDsOfManySendsAreFoundAndFewOthersLookedFor(t *testing.T) {
	var s sends
	var ids []throttle.ID
	most := 0 // of a hundred others
	for n := range throttle.MaxLimit + 100 {
		id := throttle.NewID()
		ids = append(ids, id)
		s.add(s.history(), throttle.Admission{ID: id, At: int64(n)})
		if p := s.part(); n%50 != 0 && p.to < p.room {
			continue
		}
		live := s.history()
		for i, id := range ids {
			if known := i >= len(ids)-throttle.MaxLimit; s.has(live, id) != known {
				t.Fatalf("that the %dth of %d sends is on record is not %v", i+1, len(ids), known)
			}
		}
		if n >= many {
			most = max(most, othersLookedFor(*s.ids))
		}
	}
	if most == 0 || most > 3 {
		t.Errorf("of a hundred ids that are not on record %d are looked for", most)
	}
	last := ids[len(ids)-1]
	without, _ := s.history().Without(last)
	s.set(without)
	for i := range without {
		if !s.has(without, without[i].ID) {
			t.Errorf("the %dth is on record no more", i+1)
		}
	}
	if s.has(without, last) || s.ids != nil {
		t.Errorf("one that was given back is on record, or ids are: %v", s.ids != nil)
	}
	s.add(without, throttle.Admission{ID: last, At: 2000})
	if live := s.history(); !s.has(live, last) || !s.has(live, ids[len(ids)-2]) {
		t.Error("not on record again")
	}
}

// othersLookedFor is how many of a hundred ids that were not added may have been, at most.
func othersLookedFor(ids throttle.ManyIDs) int {
	const hundreds = 100
	looked := 0
	for range 100 * hundreds {
		if ids.MayHave(throttle.NewID()) {
			looked++
		}
	}
	return (looked + hundreds - 1) / hundreds
}

// In the largest room fewer may be live, far behind its beginning.
func TestAHistoryFarInItsRoom(t *testing.T) {
	var s sends
	next := func() throttle.Admission {
		return throttle.Admission{ID: throttle.NewID(), At: s.history().Newest() + 1}
	}
	for range throttle.MaxLimit + 100 {
		s.add(s.history(), next())
	}
	largest := s.part().room
	for far := 0; far < largest-400; far = s.part().from {
		live, a := s.history(), next()
		live = live[max(0, len(live)-300):]
		s.add(live, a)
		if got := s.history(); len(got) != len(live)+1 || got[0] != live[0] || got[len(live)] != a || s.part().room != largest {
			t.Fatalf("%d sends in %+v, want %d in a room for %d", len(got), s.part(), len(live)+1, largest)
		}
	}
}

// What a key leaves is nothing to the one that gets its place.
func TestClearForgetsAll(t *testing.T) {
	var s sends
	for at := range int64(100) {
		s.add(s.history(), throttle.Admission{ID: throttle.NewID(), At: at})
	}
	if s.clear(); len(s.history()) != 0 || s.has(s.history(), throttle.NewID()) || s.ids != nil {
		t.Errorf("%d sends are left, and ids: %v", len(s.history()), s.ids != nil)
	}
}
