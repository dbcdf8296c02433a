package meter

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// MaxHeld is how many admissions a state remembers at most, so that a Take that is
// repeated is not charged twice and one that came to nothing can be given back. Limits
// up to it remember all that count.
//
// Where more than that count, the oldest are forgotten first. What is forgotten stays
// charged until it counts no more: its Release reports false, and its Take repeated is
// one more send. So this is how many sends of one key can be under way at once and still
// be sure of their places, in all processes together. Among them are, in a bucket, those that
// were counted after one that is remembered; and of those that were recorded late it remembers
// so many until the next Take, however little room it has.
//
// It is also what such a key costs where states are not in the process: up to 57 KB in Redis,
// of which all is read for one new send in fifty, and the first in each part of a
// SlidingWindow that fills, and half a KB for the others and for a no; and on disk 7 to 9 KB
// that each admission writes anew.
const MaxHeld = 1024

// A State is what a meter remembers of one key. What is in it is the meter's own
// matter; a store keeps it as it is. The zero State is a key nothing is known of.
type State struct {
	At    int64            // milliseconds: what the counts are as of
	Count int64            // what is used
	ids   throttle.IDs     // of Held where there is no index, to see most that are not there; 0 is not known
	Held  throttle.History // what can be given back, oldest first, and in a bucket what is among it
	index *index           // of Held, where that is long and has been added to in place
	Parts []int64          // what a meter needs besides
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

// clear makes s the zero State, and keeps what little memory it has for later.
func (s *State) clear() {
	s.forget(len(s.Held))
	s.At, s.Count, s.Parts = 0, 0, s.Parts[:0]
}

// nobodys is the id of sends that were counted and have a place among others. Like the zero
// id, which is in the places of those that were vacated, it is no admission's.
var nobodys = throttle.ID{1}

// find returns the place of an admission, -1 if it is not on record.
func (s *State) find(id throttle.ID) int {
	if id == (throttle.ID{}) || id == nobodys || !s.mayHold(id) {
		return -1
	}
	return s.Held.Find(id)
}

// mayHold says no only of an id that is not on record.
func (s *State) mayHold(id throttle.ID) bool {
	if s.index != nil {
		return s.index.ids.MayHave(id)
	}
	return s.ids == 0 || s.ids.MayHave(id)
}

// IDs are the admissions on record, for who remembers a throttle.Refusal; AnyID where they
// are too many to tell.
func (s *State) IDs() throttle.IDs {
	switch {
	case len(s.Held) == 0:
		return 0
	case s.ids == 0 || s.index != nil:
		return throttle.AnyID
	}
	return s.ids
}

// hold remembers one more admission, in place.
func (s *State) hold(id throttle.ID, at int64, most int) {
	s.forget(max(0, len(s.Held)+1-most))
	if s.index.full(s.Held) {
		s.index, s.Held = s.index.begin(s.Held)
	}
	s.Held = append(s.Held, throttle.Admission{ID: id, At: at})
	switch {
	case s.index != nil:
		s.index.ids.Add(id)
	case s.ids == 0 || s.ids == throttle.AnyID:
		s.ids = throttle.IDsOf(s.Held)
	default:
		s.ids.Add(id)
	}
}

// insert remembers one more admission, in place, and in its place in time.
func (s *State) insert(id throttle.ID, at int64) {
	s.hold(id, at, len(s.Held)+1)
	i := len(s.Held) - 1
	for i > 0 && s.Held[i-1].At > at {
		s.Held[i] = s.Held[i-1]
		i--
	}
	s.Held[i] = throttle.Admission{ID: id, At: at}
}

// forget forgets the first n admissions, in place. Of many it only moves on behind them:
// to move all the others would be most of what an admission takes.
func (s *State) forget(n int) {
	switch {
	case n == 0:
		return
	case n == len(s.Held) || len(s.Held) < many:
		s.index.left(n)
		s.Held = append(s.Held[:0], s.Held[n:]...)
	default:
		s.Held = s.Held[n:]
	}
	s.shrunk()
}

// drop forgets n admissions from the i-th on, in place.
func (s *State) drop(i, n int) {
	s.index.left(n)
	s.Held = append(s.Held[:i], s.Held[i+n:]...)
	s.shrunk()
}

// shrunk is for when some have gone: it says anew whose ids are there. Where few are left of
// many it lets go what those have taken, which may never be needed again.
func (s *State) shrunk() {
	if s.index != nil {
		if len(s.Held) >= few {
			return
		}
		s.index, s.Held = nil, append(throttle.History(nil), s.Held...) // a Clone of none would keep the memory
	}
	s.ids = throttle.IDsOf(s.Held)
}

// vacate forgets the id of the i-th admission, which was given back and keeps its place.
func (s *State) vacate(i int) { s.Held[i].ID = throttle.ID{} }

// vacant reports whether the i-th admission was vacated.
func (s *State) vacant(i int) bool { return s.Held[i].ID == throttle.ID{} }
