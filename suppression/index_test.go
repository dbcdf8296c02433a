package suppression

import "testing"

// A write of this node that is applied late undoes no newer one, nor is it undone by the read of an older state.
func TestIndex_AppliedLate_NewestCounts(t *testing.T) {
	const now = 1_800_000_000_000
	entry, removed := Entry{Address: "alice@example.com", Reason: Manual}, Entry{Address: "alice@example.com", Reason: Manual, Until: ended}
	for _, tt := range []struct {
		name          string
		first, second Entry
	}{
		{"a removal", removed, entry},
		{"an entry", entry, removed},
	} {
		x := newIndex()
		x.apply(tt.first, now, 8) // by another node, while all changes up to 8 are read
		x.apply(tt.second, now, 7)
		if x.has(entry) != (tt.first == entry) {
			t.Errorf("%s is undone by an older change", tt.name)
		}
		x.moveTo(8)
		x.apply(tt.second, now, 7)
		if x.has(entry) != (tt.first == entry) {
			t.Errorf("%s is undone by an older change, when all are read", tt.name)
		}
		x.apply(tt.second, now, 9)
		if x.has(entry) != (tt.second == entry) {
			t.Errorf("%s is not undone by a newer change", tt.name)
		}
	}
}
