package meter

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// Sends that are given back make no more room, and their ids are forgotten all the same: the
// index goes on to tell nearly all that is not on record.
func TestTheIndexNeverFillsUp(t *testing.T) {
	m, err := NewTokenBucket(throttle.Tier{Name: "minute", Limit: MaxLimit, Window: 60_000}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]struct{ full, kept int }{"many": {500, 500}, "few of many": {500, 10}} {
		var s State
		var ids []throttle.ID
		for range n.full {
			ids = append(ids, throttle.NewID())
			m.Take(&s, ids[len(ids)-1], 1000)
		}
		for _, id := range ids[n.kept:] {
			m.Release(&s, id, 1000)
		}
		for range 10_000 {
			id := throttle.NewID()
			if r, _ := m.Take(&s, id, 1000); !r.Allowed || !m.Release(&s, id, 1000) {
				t.Fatal("not admitted, or not given back")
			}
		}
		if n := lookedFor(&s, 1000); n > 100 {
			t.Errorf("%s: of 1000 ids that are not on record %d are looked for", name, n)
		}
		for _, id := range ids[:n.kept] {
			if !s.mayHold(id) {
				t.Fatalf("%s: one that is on record is not found", name)
			}
		}
	}
}

// Nor does it where the oldest of some forty leave, and the others move up.
func TestTheIndexOfFewerNeverFillsUp(t *testing.T) {
	m, err := NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 300, Window: 60_000}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var s State
	now := int64(1000)
	for range 200 {
		m.Take(&s, throttle.NewID(), now)
	}
	for range 10_000 {
		now += 1500
		if r, _ := m.Take(&s, throttle.NewID(), now); !r.Allowed {
			t.Fatal("not admitted")
		}
	}
	if s.index == nil || len(s.Held) < few || len(s.Held) >= many {
		t.Fatalf("%d are on record, with an index: %v", len(s.Held), s.index != nil)
	}
	if n := lookedFor(&s, 1000); n > 100 {
		t.Errorf("of 1000 ids that are not on record %d are looked for", n)
	}
}

// An index does not count the ids that it was told: it goes by where the newest admission lies, and
// by how many have left their places. By too few of those it would fill up, by too many begin anew
// too often.
func TestAnIndexKnowsHowFullItIs(t *testing.T) {
	for _, m := range oneOfEach(t, 300) {
		random := rand.New(rand.NewPCG(1, 2))
		var s State
		ids := []throttle.ID{throttle.NewID()}
		now, indexed := int64(1000), 0
		for range 100_000 {
			switch dice := random.IntN(100); {
			case dice < 70:
				ids = append(ids, throttle.NewID())
				m.Take(&s, ids[len(ids)-1], now)
			case dice < 98:
				last := max(0, len(ids)-400)
				m.Release(&s, ids[last+random.IntN(len(ids)-last)], now)
			case dice < 99:
				now += random.Int64N(3000)
			default:
				now += random.Int64N(20_000) / (1 + random.Int64N(3))
			}
			if s.index == nil {
				continue
			}
			indexed++
			set := 0
			for _, word := range s.index.ids {
				set += bits.OnesCount64(uint64(word))
			}
			told := cap(s.index.room) - cap(s.Held) + len(s.Held) + s.index.stale
			if set > 2*told || set < told { // an id is two bits; some are those of several, as of vacated places
				t.Fatalf("%s: %d bits are set, and it takes itself to have been told %d ids", m, set, told)
			}
		}
		if indexed < 1000 {
			t.Errorf("%s: there was an index %d times", m, indexed)
		}
	}
}

// To look for one takes as long as several admissions: so that has to be seldom.
func TestFewAreLookedForThatAreNotThere(t *testing.T) {
	m, err := NewFixedWindow(throttle.Tier{Name: "minute", Limit: MaxLimit, Window: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	var s State
	asked, taken := 0, 0
	for range 5 * MaxHeld {
		m.Take(&s, throttle.NewID(), 1000)
		if s.index == nil {
			continue
		}
		asked += 20
		taken += lookedFor(&s, 20)
	}
	if taken > asked*5/1000 { // it is half full at least, and three in the mean
		t.Errorf("of %d ids that are not on record %d are looked for", asked, taken)
	}
}

// A burst is forgotten with all it has taken, and the few ids that are left are known from
// all others again.
func TestABurstLeavesNothing(t *testing.T) {
	for _, m := range oneOfEach(t, 1000) {
		for name, after := range map[string]func(s *State, now int64){
			"take":  func(s *State, now int64) { m.Take(s, throttle.NewID(), now) },
			"count": func(s *State, now int64) { m.Count(s, now) },
		} {
			var s State
			for range 500 {
				m.Take(&s, throttle.NewID(), 1000)
			}
			if s.index == nil {
				t.Fatalf("%s: 500 ids have no index", m)
			}
			for now := int64(60_000); now < 1_000_000; now += 59_000 {
				after(&s, now) // and never nothing
			}
			if len(s.Held) > 2 || cap(s.Held) > 8 || s.index != nil || s.IDs() == throttle.AnyID {
				t.Errorf("%s, %s: for %d of %d an index is there: %v, ids %x", m, name, len(s.Held), cap(s.Held), s.index != nil, s.IDs())
			}
		}
	}
}

// So it is where all but a few were given back.
func TestABurstThatIsGivenBackLeavesNothing(t *testing.T) {
	m, err := NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 1000, Window: 60_000}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var s State
	var ids []throttle.ID
	for range 500 {
		ids = append(ids, throttle.NewID())
		m.Take(&s, ids[len(ids)-1], 1000)
	}
	for _, id := range ids[few/2:] {
		if !m.Release(&s, id, 1000) {
			t.Fatal("not given back")
		}
	}
	if len(s.Held) != few/2 || cap(s.Held) > few || s.index != nil || s.IDs() == throttle.AnyID {
		t.Errorf("for %d of %d an index is there: %v, ids %x", len(s.Held), cap(s.Held), s.index != nil, s.IDs())
	}
}

// An index costs no more than the documentation says, however many are on record: there it
// is with what Go rounds up.
func TestBytesOfAnIndex(t *testing.T) {
	for _, limit := range []int{70, 127, 128, 129, 130, 255, 257, 300, 600, 1024} {
		m, err := NewSlidingWindow(throttle.Tier{Name: "minute", Limit: limit, Window: 60_000}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var s State
		for i := range int64(10 * limit) {
			m.Take(&s, throttle.NewID(), i*62_000/int64(limit))
			if s.index == nil {
				continue
			}
			if bytes := 16*cap(s.index.room) + 8*len(s.index.ids); bytes > 50*len(s.Held) {
				t.Fatalf("limit %d: %d bytes for %d admissions", limit, bytes, len(s.Held))
			}
		}
		if s.index == nil {
			t.Errorf("limit %d: no index", limit)
		}
	}
}

// oneOfEach is a meter of each kind that lets so many through in a minute.
func oneOfEach(t *testing.T, limit int) []Meter {
	t.Helper()
	tier := throttle.Tier{Name: "minute", Limit: limit, Window: 60_000}
	fixed, err1 := NewFixedWindow(tier)
	sliding, err2 := NewSlidingWindow(tier, 0)
	token, err3 := NewTokenBucket(tier, 0)
	leaky, err4 := NewLeakyBucket(tier, limit-1)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return []Meter{fixed, sliding, token, leaky}
}

// lookedFor is how many of n ids that are not on record are looked for among those that are.
func lookedFor(s *State, n int) (looked int) {
	for range n {
		if s.mayHold(throttle.NewID()) {
			looked++
		}
	}
	return looked
}
