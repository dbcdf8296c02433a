package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/mailgate/mailgate/throttle"
)

// sends is a history that can be read without the entry's lock beside a lastNo, if that has
// the same turn before and after: a part of some room, which does not change any more. Where it
// lies is in the first two words; to say so looks at nothing else.
type sends struct {
	first atomic.Pointer[throttle.Admission] // of those there is room for
	word  atomic.Uint64                      // the part
	ids   *throttle.ManyIDs                  // those added in a room for many; nil in a smaller one
}

// A part is from where to where the history lies, and how many there is room for.
type part struct{ from, to, room int }

// Each of these numbers has 16 bits in the word. The largest room is for twice the most sends.
const _ uint16 = 2 * throttle.MaxLimit

func (s *sends) part() part {
	word := s.word.Load()
	return part{from: int(uint16(word >> 32)), to: int(uint16(word >> 16)), room: int(uint16(word))}
}

func (s *sends) put(p part) { s.word.Store(uint64(p.from)<<32 | uint64(p.to)<<16 | uint64(p.room)) }

// in is the part of the room that begins with this one.
func (p part) in(first *throttle.Admission) throttle.History {
	return unsafe.Slice(first, p.room)[p.from:p.to:p.to]
}

func (s *sends) history() throttle.History { return s.part().in(s.first.Load()) }

// set makes it this history, which nobody adds to.
func (s *sends) set(h throttle.History) {
	s.first.Store(unsafe.SliceData(h))
	s.put(part{to: len(h), room: len(h)})
	s.ids = nil
}

// add puts one more behind those that are live, which are the last of them. Of more than
// throttle.MaxLimit the oldest go. Where the room is full, or was made for many more, they
// move to one that has room for as many again.
func (s *sends) add(live throttle.History, a throttle.Admission) {
	live = live[max(0, len(live)+1-throttle.MaxLimit):]
	p := s.part()
	if p.to == p.room || p.room > 8*(1+len(live)) {
		next := make(throttle.History, 1+2*len(live))
		p.to, p.room = copy(next, live), len(next)
		s.first.Store(&next[0])
		s.ids = idsOf(live, p.room)
	}
	unsafe.Slice(s.first.Load(), p.room)[p.to] = a
	s.put(part{from: p.to - len(live), to: p.to + 1, room: p.room})
	if s.ids != nil {
		s.ids.Add(a.ID)
	}
}

// many is for how many sends a room tells most ids that are not among them.
const many = 16

// idsOf are the ids of some sends in a room for so many, nil where that is not for many.
func idsOf(live throttle.History, room int) *throttle.ManyIDs {
	if room < many {
		return nil
	}
	ids := throttle.NewManyIDs((room + 3) / 4)
	for i := range live {
		ids.Add(live[i].ID)
	}
	return &ids
}

// has reports whether an id is among those that are live.
func (s *sends) has(live throttle.History, id throttle.ID) bool {
	return (s.ids == nil || s.ids.MayHave(id)) && live.Find(id) >= 0
}

func (s *sends) clear() {
	s.first.Store(nil)
	s.put(part{})
	s.ids = nil
}
