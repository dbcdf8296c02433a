package memory

import (
	"sync/atomic"

	"github.com/mailgate/mailgate/throttle"
)

// A lastNo is the refusal that was last said of a key, beside its state. It is read without
// the entry's lock: so many who ask for one key that is denied do not wait for each other,
// and one whose key is denied again waits for less to come from memory.
//
// It is written, and taken back, with the lock held. The turn is odd meanwhile, and never the
// same again: who reads looks at it before and after.
type lastNo struct {
	turn  atomic.Uint64
	whose atomic.Uint64 // the key and the view that said it; 0 is nobody
}

// said is what a lastNo said. It lies apart, as only those need it who are told it again.
type said struct {
	since atomic.Int64
	until atomic.Int64
	ids   atomic.Uint64
	tier  atomic.Uint64
}

// read is what was said to this key by this view, if anything was. What is read of the state
// afterwards belongs to it while the turn is still the same.
func (l *lastNo) read(s *said, whose uint64) (no throttle.Refusal, turn uint64, found bool) {
	turn = l.turn.Load()
	if turn&1 != 0 || l.whose.Load() != whose {
		return no, turn, false
	}
	no.Since, no.Until = s.since.Load(), s.until.Load()
	no.IDs, no.Tier = throttle.IDs(s.ids.Load()), uint8(s.tier.Load())
	return no, turn, l.still(turn)
}

func (l *lastNo) still(turn uint64) bool { return l.turn.Load() == turn }

// say remembers a no, unless it does. One that leaves any id to be looked for is of no use.
func (l *lastNo) say(s *said, whose uint64, no throttle.Refusal) {
	if no.IDs == throttle.AnyID || l.whose.Load() == whose && s.covers(no) {
		return
	}
	l.turn.Add(1)
	l.whose.Store(whose)
	s.since.Store(no.Since)
	s.until.Store(no.Until)
	s.ids.Store(uint64(no.IDs))
	s.tier.Store(uint64(no.Tier))
	l.turn.Add(1)
}

// covers reports whether this says what no would, and since no later.
func (s *said) covers(no throttle.Refusal) bool {
	return s.since.Load() <= no.Since && s.until.Load() == no.Until && throttle.IDs(s.ids.Load()) == no.IDs
}

// takeBack forgets it when something on record changes: before the lock is let go and, where
// that is read without the lock, before it changes.
func (l *lastNo) takeBack() {
	if l.whose.Load() != 0 {
		l.turn.Add(1)
		l.whose.Store(0)
		l.turn.Add(1)
	}
}
