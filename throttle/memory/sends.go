package memory

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/mailgate/mailgate/throttle"
)

// sends is a history that can be read without the shard's lock beside a lastNo, if that has
// the same turn before and after: a part of some room, which does not change any more. To say
// where it lies looks at nothing but these two words.
type sends struct {
	room atomic.Pointer[throttle.Admission] // the first of those there is room for
	part atomic.Uint64
	ids  *throttle.IDs // the first word of those in a room for many
}

// many is for how many sends a room tells ids that are not among them.
const many = 16

// A part is from where to where the history lies, and how many there is room for: numbers of
// 16 bits, as nobody has more than throttle.MaxLimit sends.
type part struct{ from, to, room int }

func (s *sends) at() (p part) {
	word := s.part.Load()
	return part{from: int(uint16(word >> 32)), to: int(uint16(word >> 16)), room: int(uint16(word))}
}

func (s *sends) put(p part) { s.part.Store(uint64(p.from)<<32 | uint64(p.to)<<16 | uint64(p.room)) }

// of is the part of this room.
func (p part) of(room *throttle.Admission) throttle.History {
	return unsafe.Slice(room, p.room)[p.from:p.to:p.to]
}

func (s *sends) history() throttle.History { return s.at().of(s.room.Load()) }

// set makes it this history, which nobody adds to.
func (s *sends) set(h throttle.History) {
	s.room.Store(unsafe.SliceData(h))
	s.put(part{to: len(h), room: len(h)})
	s.ids = nil
}

// add puts one more behind those that are live, which are the last of them. Of more than
// throttle.MaxLimit the oldest go. Where the room is full, or was made for many more, they
// move to one that has room for as many again.
func (s *sends) add(live throttle.History, a throttle.Admission) {
	live = live[max(0, len(live)+1-throttle.MaxLimit):]
	p := s.at()
	if p.to == p.room || p.room > 8*(1+len(live)) {
		next := make(throttle.History, 1+2*len(live))
		p.to, p.room = copy(next, live), len(next)
		s.room.Store(&next[0])
		s.remember(next, live)
	}
	unsafe.Slice(s.room.Load(), p.room)[p.to] = a
	s.put(part{from: p.to - len(live), to: p.to + 1, room: p.room})
	if s.ids != nil {
		s.known().Add(a.ID)
	}
}

// remember begins with the ids in a room, where that is for many.
func (s *sends) remember(room, live throttle.History) {
	if s.ids = nil; len(room) < many {
		return
	}
	ids := make(throttle.ManyIDs, words(len(room)))
	for i := range live {
		ids.Add(live[i].ID)
	}
	s.ids = &ids[0]
}

// words is how many tell the ids in a room for so many, with 16 to 32 bits for each: of a
// hundred that are not there one has to be looked for.
func words(room int) int { return 1 << bits.Len(uint(room/4-1)) }

// known are the ids that were added in this room.
func (s *sends) known() throttle.ManyIDs { return unsafe.Slice(s.ids, words(s.at().room)) }

// has reports whether an id is among those that are live.
func (s *sends) has(live throttle.History, id throttle.ID) bool {
	return (s.ids == nil || s.known().MayHave(id)) && live.Find(id) >= 0
}

func (s *sends) clear() {
	s.room.Store(nil)
	s.part.Store(0)
	s.ids = nil
}
