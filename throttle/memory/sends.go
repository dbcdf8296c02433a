package memory

import (
	"sync/atomic"

	"github.com/mailgate/mailgate/throttle"
)

// sends is a history that can be read without the shard's lock beside a lastNo, if that has
// the same turn before and after: a stretch of some room, neither of which changes any more.
type sends struct {
	room atomic.Pointer[throttle.History]
	part atomic.Uint64 // from where, in the upper half, to where
}

func (s *sends) stretch() throttle.Stretch {
	part := s.part.Load()
	return throttle.Stretch{Of: s.room.Load(), From: uint32(part >> 32), To: uint32(part)}
}

func (s *sends) history() throttle.History { return s.stretch().History() }

// set makes it this history, which nobody adds to.
func (s *sends) set(h throttle.History) {
	s.room.Store(&h)
	s.part.Store(uint64(len(h)))
}

// add puts one more behind those that are live, which are the last of them. Of more than
// throttle.MaxLimit the oldest go. Where the room is full, or was made for many more, they
// move to one that has room for as many again.
func (s *sends) add(live throttle.History, a throttle.Admission) {
	live = live[max(0, len(live)+1-throttle.MaxLimit):]
	part := s.part.Load()
	to := int(uint32(part))
	if room := s.room.Load(); room == nil || to == len(*room) || len(*room) > 8*(1+len(live)) {
		next := make(throttle.History, 1+2*len(live))
		to = copy(next, live)
		s.room.Store(&next)
	}
	(*s.room.Load())[to] = a
	s.part.Store(uint64(to-len(live))<<32 | uint64(to+1))
}

func (s *sends) clear() {
	s.room.Store(nil)
	s.part.Store(0)
}
