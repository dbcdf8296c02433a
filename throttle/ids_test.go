package throttle_test

import (
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// What was added may be there, always; what was not is known not to be, as a rule.
func TestIDs(t *testing.T) {
	const tries = 10_000
	taken := map[int]int{}
	for range tries {
		var h throttle.History
		for n := range 17 {
			if ids := throttle.IDsOf(h); n <= 16 && ids.MayHave(throttle.NewID()) {
				taken[n]++
			}
			h = append(h, throttle.Admission{ID: throttle.NewID()})
			ids := throttle.IDsOf(h)
			for _, a := range h {
				if !ids.MayHave(a.ID) {
					t.Fatalf("%s is among %d and is not found", a.ID, len(h))
				}
			}
			if len(h) == 17 && ids != throttle.AnyID {
				t.Fatalf("of %d it is said that some are not among them", len(h))
			}
		}
	}
	for n, most := range map[int]int{0: 0, 1: tries / 250, 4: tries / 50, 16: tries / 5} {
		if taken[n] > most {
			t.Errorf("of %d ids that are not among %d, %d are looked for, want at most %d", tries, n, taken[n], most)
		}
	}
	if !throttle.AnyID.MayHave(throttle.NewID()) {
		t.Error("any id is one")
	}
}

// Of many ids all are known that were added, and few others: on average, for ids that lie
// close together by chance let more of the others through.
func TestManyIDs(t *testing.T) {
	const filters, asked = 50, 200 // of each
	for _, n := range []int{4, 16, 100, 1000} {
		known := 0
		for range filters {
			many := throttle.NewManyIDs((n + 3) / 4)
			for range n {
				id := throttle.NewID()
				if many.Add(id); !many.MayHave(id) {
					t.Fatalf("%s of %d is not known", id, n)
				}
			}
			for range asked {
				if many.MayHave(throttle.NewID()) {
					known++
				}
			}
		}
		if known > filters*asked*25/1000 {
			t.Errorf("of %d others %d are known among %d", filters*asked, known, n)
		}
	}
}
