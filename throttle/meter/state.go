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

	index *index // of Held, where that is long and has been added to in place
}

// Clone returns a state that shares no memory with s. It has room for one admission
// more, as a state is seldom cloned for anything else.
func (s State) Clone() State {
	s.Parts, s.index = slices.Clone(s.Parts), nil
	if s.Held != nil {
		s.Held = append(make(throttle.History, 0, len(s.Held)+1), s.Held...)
	}
	return s
}

// clear makes s the zero State, and keeps its memory for later.
func (s *State) clear() {
	s.At, s.Count, s.Parts, s.Held = 0, 0, s.Parts[:0], s.Held[:0]
}

// find returns the place of an admission, -1 if it is not on record.
func (s *State) find(id throttle.ID) int {
	if s.index != nil && !s.index.mayHold(id) {
		return -1
	}
	return s.Held.Find(id)
}

// hold remembers one more admission, in place.
func (s *State) hold(id throttle.ID, at int64, most int) {
	s.forget(max(0, len(s.Held)+1-most))
	if len(s.Held) >= many && len(s.Held) == cap(s.Held) {
		s.index, s.Held = s.index.begin(s.Held)
	}
	s.Held = append(s.Held, throttle.Admission{ID: id, At: at})
	if s.index != nil {
		s.index.add(id)
	}
}

// forget forgets the first n admissions, in place. Of many it only moves on behind them:
// to move all the others would be most of what an admission takes.
func (s *State) forget(n int) {
	switch {
	case n == 0:
	case len(s.Held) < many:
		s.Held = append(s.Held[:0], s.Held[n:]...)
	default:
		s.Held = s.Held[n:]
	}
}

// drop forgets the i-th admission, in place.
func (s *State) drop(i int) { s.Held = append(s.Held[:i], s.Held[i+1:]...) }
