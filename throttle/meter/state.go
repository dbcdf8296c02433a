package meter

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// MaxHeld is how many admissions a state remembers at most, so that a Take that is
// repeated is not charged twice and one that came to nothing can be given back. Limits
// up to it remember all that count. Beyond, the oldest are forgotten first, and then stay
// charged whatever becomes of them. It is more than a process has under way at once, and
// few enough to be looked through, written and sent at each step.
const MaxHeld = 256

// A State is what a meter remembers of one key. What is in it is the meter's own
// matter; a store keeps it as it is. The zero State is a key nothing is known of.
type State struct {
	At    int64            // milliseconds: what the counts are as of
	Count int64            // what is used
	Parts []int64          // what a meter needs besides
	Held  throttle.History // the admissions that can be given back, oldest first
}

// Clone returns a state that shares no memory with s.
func (s State) Clone() State {
	s.Parts, s.Held = slices.Clone(s.Parts), slices.Clone(s.Held)
	return s
}

// clear makes s the zero State, and keeps its memory for later.
func (s *State) clear() {
	s.At, s.Count, s.Parts, s.Held = 0, 0, s.Parts[:0], s.Held[:0]
}

// hold remembers one more admission, in place.
func (s *State) hold(id throttle.ID, at int64, most int) {
	s.forget(max(0, len(s.Held)+1-most))
	s.Held = append(s.Held, throttle.Admission{ID: id, At: at})
}

// forget forgets the first n admissions, in place.
func (s *State) forget(n int) {
	if n > 0 {
		s.Held = append(s.Held[:0], s.Held[n:]...)
	}
}

// drop forgets the i-th admission, in place.
func (s *State) drop(i int) { s.Held = append(s.Held[:i], s.Held[i+1:]...) }
