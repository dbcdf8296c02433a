package meter

import (
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
		taken := 0
		for range 1000 {
			if s.mayHold(throttle.NewID()) {
				taken++
			}
		}
		if taken > 100 {
			t.Errorf("%s: of 1000 ids that are not on record %d are looked for", name, taken)
		}
		for _, id := range ids[:n.kept] {
			if !s.mayHold(id) {
				t.Fatalf("%s: one that is on record is not found", name)
			}
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
		if len(s.Held) < many {
			continue
		}
		for range 20 {
			if asked++; s.mayHold(throttle.NewID()) {
				taken++
			}
		}
	}
	if taken > asked*4/1000 {
		t.Errorf("of %d ids that are not on record %d are looked for", asked, taken)
	}
}
