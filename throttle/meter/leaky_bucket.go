package meter

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// A LeakyBucket is a queue that drains at the tier's rate. An admitted send has a place
// in it, and the verdict's Delay says when its turn comes; so sends leave at even
// distances however they came. A send that finds the queue full is refused.
//
// Delay counts from the clock that counts: where that has stepped back, from the newest
// send on record. So it is never longer than what is ahead in the queue takes to leave,
// and nobody is held back for as long as the clock was wrong.
type LeakyBucket struct{ *bucket }

// NewLeakyBucket checks the numbers. The queue is how many may wait; with 0 a send goes
// at once or not at all.
func NewLeakyBucket(t throttle.Tier, queue int) (LeakyBucket, error) {
	if queue < 0 || queue >= MaxLimit {
		return LeakyBucket{}, fmt.Errorf("tier %s: a queue has room for 0 to %d sends, not %d", t.Name, MaxLimit-1, queue)
	}
	b, err := newBucket(t, queue+1)
	return LeakyBucket{b}, err
}

// Look implements Meter. Its Delay is that of a send that came now.
func (m LeakyBucket) Look(s *State, now int64) Reading {
	r := m.look(s, now)
	if r.Allowed {
		_, level := m.at(s, now)
		r.Delay = m.leaving(level)
	}
	return r
}

// Take implements Meter.
func (m LeakyBucket) Take(s *State, id throttle.ID, now int64) (r Reading, changed bool) {
	r, changed = m.take(s, id, now)
	switch {
	case changed:
		r.Delay = m.leaving(s.Count - m.tier.Window)
	case r.Allowed:
		r.Delay = m.delayOf(s, id, now)
	}
	return r, changed
}

// Count implements Meter.
func (m LeakyBucket) Count(s *State, now int64) Reading {
	r := m.count(s, now)
	if r.Allowed {
		r.Delay = m.leaving(s.Count - m.tier.Window)
	}
	return r
}

// leaving is how long it takes until so much has left.
func (m LeakyBucket) leaving(level int64) int64 { return ceil(level, int64(m.tier.Limit)) }

// delayOf is how long a send that came before still waits: for what was there then. Where
// the rate has changed since, what is there now and is not itself is the most that can be
// ahead of it.
func (m LeakyBucket) delayOf(s *State, id throttle.ID, now int64) int64 {
	clock, level := m.at(s, now)
	most := m.leaving(max(0, level-m.tier.Window))
	at, ahead := s.Parts[0], s.Parts[1]
	for _, send := range s.Held {
		ahead, at = m.drained(ahead, at, send.At), send.At
		if send.ID == id {
			break
		}
		ahead += m.tier.Window
	}
	return min(most, max(0, at+m.leaving(ahead)-clock))
}

// Release implements Meter. Those behind it in the queue have been told their turns, and
// keep them. So the last is free again at once. Any other reports true as well, but its
// turn passes unused, and is free when it comes or as soon as all behind it are given
// back too: with the last go all before it that were given back already. When all have
// been given back, the queue is empty.
func (m LeakyBucket) Release(s *State, id throttle.ID, now int64) bool {
	_, level := m.at(s, now)
	first := s.find(id)
	if first < 0 || level == 0 {
		return false
	}
	if first < len(s.Held)-1 {
		s.vacate(first)
		m.forgetCounted(s)
		return true
	}
	for first > 0 && s.vacant(first-1) {
		first--
	}
	m.takeOut(s, first, len(s.Held)-first)
	return true
}

// Reserving implements Meter.
func (m LeakyBucket) Reserving(n int) (Meter, error) {
	b, err := m.reserving(n)
	if err != nil {
		return nil, err
	}
	return LeakyBucket{b}, nil
}

// Form implements Meter.
func (m LeakyBucket) Form() string { return fmt.Sprintf("queue-%d", m.tier.Window) }

// String implements Meter.
func (m LeakyBucket) String() string {
	if !m.made() {
		return nothing
	}
	return fmt.Sprintf("leaky-bucket %s, a queue of %d", m.tier, m.room-1)
}
