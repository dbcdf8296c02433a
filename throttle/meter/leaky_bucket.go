package meter

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// A LeakyBucket is a queue that drains at the tier's rate. An admitted send has a place
// in it, and the verdict's Delay says when its turn comes; so sends leave at even
// distances however they came. A send that finds the queue full is refused.
type LeakyBucket struct{ bucket }

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
func (m LeakyBucket) Look(s *State, now int64) throttle.Verdict {
	v := m.look(s, now)
	if v.Allowed {
		clock, level := m.at(s, now)
		v.Delay = m.turn(clock, level) - now
	}
	return v
}

// Take implements Meter.
func (m LeakyBucket) Take(s *State, id throttle.ID, now int64) (v throttle.Verdict, changed bool) {
	v, changed = m.take(s, id, now)
	switch {
	case changed:
		v.Delay = m.turn(s.At, s.Count-m.tier.Window) - now
	case v.Allowed:
		v.Delay = max(0, m.turnOf(s, id)-now)
	}
	return v, changed
}

// turn is when a send leaves that finds so much in the bucket.
func (m LeakyBucket) turn(clock, level int64) int64 { return clock + ceil(level, int64(m.tier.Limit)) }

// turnOf is when a send leaves that came before: it waits for what was there then.
func (m LeakyBucket) turnOf(s *State, id throttle.ID) int64 {
	at, level := s.Parts[0], s.Parts[1]
	for _, send := range s.Held {
		level = m.drained(level, at, send.At)
		at = send.At
		if send.ID == id {
			break
		}
		level += m.tier.Window
	}
	return m.turn(at, level)
}

// Release implements Meter, for the last in the queue: those behind any other have been
// told their turns, so its own stays taken.
func (m LeakyBucket) Release(s *State, id throttle.ID, now int64) bool {
	last := len(s.Held) - 1
	return last >= 0 && s.Held[last].ID == id && m.release(s, id, now)
}

// Used implements Meter: it is how many have not left, the one that leaves included.
func (m LeakyBucket) Used(s *State, now int64) int { return m.used(s, now) }

// Expires implements Meter: it is when the bucket is empty.
func (m LeakyBucket) Expires(s *State) int64 { return m.expires(s) }

// Tier implements Meter.
func (m LeakyBucket) Tier() throttle.Tier { return m.tier }

// Room is how many sends the bucket has room for: those that wait, and the one whose
// turn it is.
func (m LeakyBucket) Room() int { return m.room }

// Held is how many admissions a state remembers at most.
func (m LeakyBucket) Held() int { return m.held }

// Reserving implements Meter.
func (m LeakyBucket) Reserving(n int) (Meter, error) {
	b, err := m.reserving(n)
	return LeakyBucket{b}, err
}

// Form implements Meter.
func (m LeakyBucket) Form() string { return fmt.Sprintf("queue-%d", m.tier.Window) }

// String implements Meter.
func (m LeakyBucket) String() string {
	return fmt.Sprintf("leaky-bucket %s, a queue of %d", m.tier, m.room-1)
}
