package meter

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// A FixedWindow counts sends from one full window of the clock to the next: a window of
// 24h begins at midnight, UTC. A state is one counter. Across the edge between two
// windows it admits up to twice its limit at once.
//
// An id is charged once within a window. A window knows nothing of those before it: so a
// Take that is repeated right across the edge is one more send in the new window, and what
// was admitted before the edge cannot be given back behind it.
type FixedWindow struct{ *fixedWindow }

type fixedWindow struct {
	tier throttle.Tier
	held int
}

// NewFixedWindow checks the tier. The error is one sentence that names what cannot be
// right.
func NewFixedWindow(t throttle.Tier) (FixedWindow, error) {
	if err := check(t); err != nil {
		return FixedWindow{}, err
	}
	return FixedWindow{&fixedWindow{tier: t, held: min(t.Limit, MaxHeld)}}, nil
}

// at is the window that counts, and what is used in it. A clock that has stepped back
// behind the window counts as its beginning.
func (m *fixedWindow) at(s *State, now int64) (clock, start, used int64) {
	clock = max(now, s.At)
	if clock-s.At < m.tier.Window {
		return clock, s.At, s.Count
	}
	return clock, clock - clock%m.tier.Window, 0
}

func (m *fixedWindow) reading(allowed bool, clock, start, used int64) Reading {
	r := Reading{Answer: throttle.Answer{Allowed: allowed, Remaining: int32(max(0, int64(m.tier.Limit)-used))}, Clock: clock}
	if r.Remaining == 0 {
		r.Wait = start + m.tier.Window - clock
	}
	return r
}

// Look implements Meter.
func (m FixedWindow) Look(s *State, now int64) Reading {
	clock, start, used := m.at(s, now)
	return m.reading(used < int64(m.tier.Limit), clock, start, used)
}

// Take implements Meter.
func (m FixedWindow) Take(s *State, id throttle.ID, now int64) (r Reading, changed bool) {
	clock, start, used := m.at(s, now)
	if start == s.At && s.find(id) >= 0 {
		return m.reading(true, clock, start, used), false
	}
	if r = m.count(s, clock, start, used); r.Allowed {
		s.hold(id, clock, m.held)
	}
	return r, r.Allowed
}

// Count implements Meter.
func (m FixedWindow) Count(s *State, now int64) Reading {
	clock, start, used := m.at(s, now)
	return m.count(s, clock, start, used)
}

// count admits one send more than are used, if there is room. A new window knows nothing of
// those before it.
func (m *fixedWindow) count(s *State, clock, start, used int64) Reading {
	if used >= int64(m.tier.Limit) {
		return m.reading(false, clock, start, used)
	}
	m.add(s, start, used)
	return m.reading(true, clock, start, s.Count)
}

// add counts one send more than are used in the window that begins at start.
func (m *fixedWindow) add(s *State, start, used int64) {
	if start != s.At {
		s.At = start
		s.forget(len(s.Held))
	}
	s.Count = used + 1
}

// Release implements Meter.
func (m FixedWindow) Release(s *State, id throttle.ID, now int64) bool {
	_, _, used := m.at(s, now)
	i := s.find(id)
	if i < 0 || used == 0 {
		return false
	}
	s.Count--
	s.drop(i, 1)
	if s.Count == 0 {
		s.clear()
	}
	return true
}

// Used implements Meter.
func (m FixedWindow) Used(s *State, now int64) int {
	_, _, used := m.at(s, now)
	return int(used)
}

// Expires implements Meter: it is the window's end.
func (m FixedWindow) Expires(s *State) int64 { return s.At + m.tier.Window }

// Tier implements Meter.
func (m FixedWindow) Tier() throttle.Tier { return m.tier }

// Quota implements Meter.
func (m FixedWindow) Quota() throttle.Tier { return m.tier }

// Held is how many admissions a state remembers at most.
func (m FixedWindow) Held() int { return m.held }

// Reserving implements Meter.
func (m FixedWindow) Reserving(n int) (Meter, error) {
	limit, err := reserve(m.tier.Name, m.tier.Limit, n)
	if err != nil {
		return nil, err
	}
	less := *m.fixedWindow
	less.tier.Limit = limit
	return FixedWindow{&less}, nil
}

// Form implements Meter.
func (m FixedWindow) Form() string { return fmt.Sprintf("fixed-%d", m.tier.Window) }

// String implements Meter.
func (m FixedWindow) String() string {
	if !m.made() {
		return nothing
	}
	return "fixed-window " + m.tier.String()
}
