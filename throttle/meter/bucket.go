package meter

import (
	"fmt"
	"math/bits"

	"github.com/mailgate/mailgate/throttle"
)

// A bucket fills with each send and drains at a constant rate. It counts in parts of a
// send, as many as the window has milliseconds: then it drains as many parts in a
// millisecond as the limit has sends, and every step is whole numbers.
//
// The state: Count parts were in it at At. Held are the sends that are in it, and
// Parts what was in it before them, as when and how much: so one of them can be taken
// out again, and one that is told of late be put in, as if it had never been otherwise. One
// without an id was given back, and its place stays taken; one of nobody's was counted, and is
// there behind others.
type bucket struct {
	tier throttle.Tier
	room int   // sends
	full int64 // parts that there is room for
	held int
}

func newBucket(t throttle.Tier, room int) (*bucket, error) {
	if err := check(t); err != nil {
		return nil, err
	}
	if room < 1 || room > MaxLimit {
		return nil, fmt.Errorf("tier %s: there must be room for 1 to %d sends, not %d", t.Name, MaxLimit, room)
	}
	if exact/t.Window <= int64(room) {
		return nil, fmt.Errorf("tier %s: the window is too long for so many sends", t.Name)
	}
	return &bucket{tier: t, room: room, full: int64(room) * t.Window, held: min(room, MaxHeld)}, nil
}

// drained is what is left at clock of so many parts at an earlier moment.
func (b *bucket) drained(parts, at, clock int64) int64 {
	more, gone := bits.Mul64(uint64(clock-at), uint64(b.tier.Limit))
	if more > 0 || gone >= uint64(parts) {
		return 0
	}
	return parts - int64(gone)
}

// at is the moment that counts, and what is in the bucket then.
func (b *bucket) at(s *State, now int64) (clock, level int64) {
	clock = max(now, s.At)
	return clock, b.drained(s.Count, s.At, clock)
}

// reading of a bucket with so much in it.
func (b *bucket) reading(allowed bool, level, clock int64) Reading {
	r := Reading{Answer: throttle.Answer{Allowed: allowed}, Clock: clock}
	if free := b.full - level; free >= b.tier.Window {
		r.Remaining = int32(free / b.tier.Window)
	} else {
		r.Wait = ceil(b.tier.Window-free, int64(b.tier.Limit))
	}
	return r
}

// Tier implements Meter.
func (b *bucket) Tier() throttle.Tier { return b.tier }

// Room is how many sends the bucket has room for: the burst, or those that wait and the one
// whose turn it is.
func (b *bucket) Room() int { return b.room }

// Held is how many admissions a state remembers at most.
func (b *bucket) Held() int { return b.held }

// Quota implements Meter: it is what a whole bucket is, as many sends as there is room for, in
// the time it takes to drain them.
func (b *bucket) Quota() throttle.Tier {
	return throttle.Tier{Name: b.tier.Name, Limit: b.room, Window: ceil(b.full, int64(b.tier.Limit))}
}

func (b *bucket) fits(level int64) bool {
	return level+b.tier.Window <= b.full
}

func (b *bucket) look(s *State, now int64) Reading {
	clock, level := b.at(s, now)
	return b.reading(b.fits(level), level, clock)
}

func (b *bucket) take(s *State, id throttle.ID, now int64) (r Reading, changed bool) {
	clock, level := b.at(s, now)
	again := s.find(id) >= 0
	if again && level > 0 {
		return b.reading(true, level, clock), false
	}
	if !b.fits(level) {
		return b.reading(false, level, clock), false
	}
	b.settle(s, level, clock, again)
	s.At, s.Count = clock, level+b.tier.Window
	s.hold(id, clock, b.held)
	return b.reading(true, s.Count, clock), true
}

// count is take of a send that is remembered only where one before it is: it has to be known
// when it came if that one is taken out.
func (b *bucket) count(s *State, now int64) Reading {
	clock, level := b.at(s, now)
	if !b.fits(level) {
		return b.reading(false, level, clock)
	}
	if len(s.Held) > 0 {
		b.settle(s, level, clock, false)
	}
	switch {
	case len(s.Held) > 0:
		s.hold(nobodys, clock, b.held)
	case len(s.Parts) > 0: // else it is not written, for the other cores' sake
		s.Parts = s.Parts[:0]
	}
	s.At, s.Count = clock, level+b.tier.Window
	return b.reading(true, s.Count, clock)
}

// settle forgets the sends that need not be remembered any more: all of them once the
// bucket has been empty, else the oldest of too many. One that comes again then is another.
func (b *bucket) settle(s *State, level, clock int64, again bool) {
	if level == 0 && (again || !s.open()) {
		s.Parts = append(s.Parts[:0], clock, 0)
		s.forget(len(s.Held))
		return
	}
	if len(s.Parts) == 0 { // those before were counted
		s.Parts = append(s.Parts, s.At, s.Count)
	}
	over := max(0, len(s.Held)+1-b.held)
	for 0 < over && over < len(s.Held) && s.Held[over].ID == nobodys {
		over++ // none before it can be given back any more
	}
	b.forget(s, over)
}

// forget forgets the first n sends: what they had in the bucket was there before the others.
func (b *bucket) forget(s *State, n int) {
	for _, send := range s.Held[:n] {
		s.Parts[1] = b.drained(s.Parts[1], s.Parts[0], send.At) + b.tier.Window
		s.Parts[0] = send.At
	}
	s.forget(n)
}

// forgetCounted forgets those that were counted behind none that can still be given back. A
// vacated place goes only with one of them behind it: else it is free again when all behind it
// are given back.
func (b *bucket) forgetCounted(s *State) {
	n := 0
	for i := 0; i < len(s.Held) && (s.vacant(i) || s.Held[i].ID == nobodys); i++ {
		if s.Held[i].ID == nobodys {
			n = i + 1
		}
	}
	b.forget(s, n)
}

// Release implements Meter.
func (b *bucket) Release(s *State, id throttle.ID, now int64) bool {
	_, level := b.at(s, now)
	i := s.find(id)
	if i < 0 || level == 0 {
		return false
	}
	b.takeOut(s, i, 1)
	return true
}

// takeOut takes n sends out of the bucket, from the i-th on, as if they had never been
// there. Where the rate has changed since they came nobody knows how it would have been
// without them: then each is one send less, or what is left of one.
func (b *bucket) takeOut(s *State, i, n int) {
	at, level, _ := b.refilled(s)
	sameRate := at == s.At && level == s.Count
	s.drop(i, n)
	if sameRate {
		b.refill(s)
	} else {
		s.Count = max(0, s.Count-int64(n)*b.tier.Window)
	}
	if s.Count == 0 {
		s.clear()
	}
	b.forgetCounted(s)
}

// refill fills the bucket anew with the sends that are left. Where it now turns out to
// have been empty, those before need not be remembered.
func (b *bucket) refill(s *State) {
	at, level, empty := b.refilled(s)
	s.At, s.Count = at, level
	if empty >= 0 {
		s.Parts[0], s.Parts[1] = s.Held[empty].At, 0
		s.forget(empty)
	}
}

// refilled is what a bucket that drains at this rate would have in it, and as of when,
// and the last send that would have found it empty, -1 if none would.
func (b *bucket) refilled(s *State) (at, level int64, empty int) {
	at, level, empty = s.Parts[0], s.Parts[1], -1
	for i := range s.Held {
		send := &s.Held[i]
		level, at = b.drained(level, at, send.At), send.At
		if level == 0 {
			empty = i
		}
		level += b.tier.Window
	}
	return at, level, empty
}

// Used implements Meter: it is how many sends have not drained, the one that drains included.
func (b *bucket) Used(s *State, now int64) int {
	_, level := b.at(s, now)
	return int(ceil(level, b.tier.Window))
}

// Expires implements Meter: it is when all has drained.
func (b *bucket) Expires(s *State) int64 { return s.At + ceil(s.Count, int64(b.tier.Limit)) }

func (b *bucket) reserving(n int) (*bucket, error) {
	room, err := reserve(b.tier.Name, b.room, n)
	if err != nil {
		return nil, err
	}
	less := *b
	less.room, less.full = room, int64(room)*b.tier.Window
	return &less, nil
}

// ceil is a/b, rounded up, of whole numbers that are not negative.
func ceil(a, b int64) int64 { return (a + b - 1) / b }
