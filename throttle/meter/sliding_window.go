package meter

import (
	"fmt"

	"github.com/mailgate/mailgate/throttle"
)

// A SlidingWindow counts sends in parts of its window and lets each part go as a whole,
// when its last moment has left. So it never admits more than its limit in any window;
// but a send may weigh longer than the window, by less than one part. A state is one
// number for each part, however large the limit. With parts of one millisecond it is
// exact.
type SlidingWindow struct{ *slidingWindow }

type slidingWindow struct {
	tier  throttle.Tier
	parts int
	part  int64 // milliseconds
	held  int
}

// DefaultParts is how finely a SlidingWindow counts where nothing else is asked for: a
// window of a minute goes by second, and a send weighs at most 999 ms too long.
const DefaultParts = 60

// MaxParts is how finely it can.
const MaxParts = 1000

// NewSlidingWindow checks the numbers; 0 parts are DefaultParts. Where the window cannot
// be divided evenly, a part is rounded up to whole milliseconds.
func NewSlidingWindow(t throttle.Tier, parts int) (SlidingWindow, error) {
	if err := check(t); err != nil {
		return SlidingWindow{}, err
	}
	if parts == 0 {
		parts = DefaultParts
	}
	if parts < 1 || parts > MaxParts {
		return SlidingWindow{}, fmt.Errorf("tier %s: a window has between 1 and %d parts, not %d", t.Name, MaxParts, parts)
	}
	part := (t.Window + int64(parts) - 1) / int64(parts)
	return SlidingWindow{&slidingWindow{tier: t, parts: parts, part: part, held: min(t.Limit, MaxHeld)}}, nil
}

// The state: At is where the newest part begins, Parts are the counts of the parts up to
// it, and Count is their sum.

// leaves is when the part that begins at start weighs no more.
func (m *slidingWindow) leaves(start int64) int64 { return start + m.part - 1 + m.tier.Window }

// oldest is where the first part in the state begins.
func (m *slidingWindow) oldest(s *State) int64 { return s.At - int64(len(s.Parts)-1)*m.part }

// at is the moment that counts, how many parts have left by then, and what the others
// add up to.
func (m *slidingWindow) at(s *State, now int64) (clock int64, gone int, used int64) {
	clock, used = max(now, s.At), s.Count
	if len(s.Parts) == 0 {
		return clock, 0, 0
	}
	for start := m.oldest(s); gone < len(s.Parts) && clock >= m.leaves(start); start += m.part {
		used -= s.Parts[gone]
		gone++
	}
	return clock, gone, used
}

// reading of a state of which so many parts have gone and the others add up to used.
func (m *slidingWindow) reading(allowed bool, s *State, gone int, used, clock int64) Reading {
	limit := int64(m.tier.Limit)
	r := Reading{Answer: throttle.Answer{Allowed: allowed, Remaining: int32(max(0, limit-used))}, Clock: clock}
	if r.Remaining == 0 {
		over := used - limit
		for ; over >= 0; gone++ {
			over -= s.Parts[gone]
		}
		r.Wait = m.leaves(m.oldest(s)+int64(gone-1)*m.part) - clock
	}
	return r
}

// Look implements Meter.
func (m SlidingWindow) Look(s *State, now int64) Reading {
	clock, gone, used := m.at(s, now)
	return m.reading(used < int64(m.tier.Limit), s, gone, used, clock)
}

// Take implements Meter.
func (m SlidingWindow) Take(s *State, id throttle.ID, now int64) (r Reading, changed bool) {
	clock, gone, used := m.at(s, now)
	if i := s.find(id); i >= 0 && m.weighs(s.Held[i], clock) {
		return m.reading(true, s, gone, used, clock), false
	}
	if r = m.count(s, gone, used, clock); r.Allowed {
		s.hold(id, clock, m.held)
	}
	return r, r.Allowed
}

// Count implements Meter.
func (m SlidingWindow) Count(s *State, now int64) Reading {
	clock, gone, used := m.at(s, now)
	return m.count(s, gone, used, clock)
}

// count admits one send more than are used, if there is room. The parts that have gone and
// those that were in them are then forgotten.
func (m *slidingWindow) count(s *State, gone int, used, clock int64) Reading {
	if used >= int64(m.tier.Limit) {
		return m.reading(false, s, gone, used, clock)
	}
	m.advance(s, gone, clock)
	s.Parts[len(s.Parts)-1]++
	s.Count = used + 1
	m.forgetLight(s, clock)
	return m.reading(true, s, 0, s.Count, clock)
}

// forgetLight forgets the admissions that weigh no more.
func (m *slidingWindow) forgetLight(s *State, clock int64) {
	light := 0
	for light < len(s.Held) && !m.weighs(s.Held[light], clock) {
		light++
	}
	s.forget(light)
}

// advance makes the part of the clock the newest, without those that have gone.
func (m *slidingWindow) advance(s *State, gone int, clock int64) {
	if gone == 0 && len(s.Parts) > 0 && clock-s.At < m.part {
		return
	}
	start := clock - clock%m.part
	kept := s.Parts[gone:]
	ahead := len(kept)
	if ahead > 0 {
		ahead = int((start - s.At) / m.part)
	} else {
		ahead = 1
	}
	s.Parts = append(s.Parts[:0], kept...)
	for range ahead {
		s.Parts = append(s.Parts, 0)
	}
	s.At = start
}

// weighs reports whether an admission counts at clock: in its window it does, and after it
// until its part leaves.
func (m *slidingWindow) weighs(a throttle.Admission, clock int64) bool {
	return clock-a.At < m.tier.Window || clock < m.leaves(a.At-a.At%m.part)
}

// Release implements Meter.
func (m SlidingWindow) Release(s *State, id throttle.ID, now int64) bool {
	i := s.find(id)
	if i < 0 || !m.weighs(s.Held[i], max(now, s.At)) {
		return false
	}
	at := s.Held[i].At
	part := int((at - at%m.part - m.oldest(s)) / m.part)
	s.Parts[part]--
	s.Count--
	s.drop(i, 1)
	m.shorten(s)
	return true
}

// shorten lets the state end with its newest send.
func (m *slidingWindow) shorten(s *State) {
	for len(s.Parts) > 0 && s.Parts[len(s.Parts)-1] == 0 {
		s.Parts = s.Parts[:len(s.Parts)-1]
		s.At -= m.part
	}
	if len(s.Parts) == 0 {
		s.clear()
	}
}

// Used implements Meter.
func (m SlidingWindow) Used(s *State, now int64) int {
	_, _, used := m.at(s, now)
	return int(used)
}

// Expires implements Meter: it is when the newest part has left.
func (m SlidingWindow) Expires(s *State) int64 { return m.leaves(s.At) }

// Tier implements Meter.
func (m SlidingWindow) Tier() throttle.Tier { return m.tier }

// Quota implements Meter.
func (m SlidingWindow) Quota() throttle.Tier { return m.tier }

// Part is how many milliseconds a part has: a send weighs less than that too long.
func (m SlidingWindow) Part() int64 { return m.part }

// Held is how many admissions a state remembers at most.
func (m SlidingWindow) Held() int { return m.held }

// Reserving implements Meter.
func (m SlidingWindow) Reserving(n int) (Meter, error) {
	limit, err := reserve(m.tier.Name, m.tier.Limit, n)
	if err != nil {
		return nil, err
	}
	less := *m.slidingWindow
	less.tier.Limit = limit
	return SlidingWindow{&less}, nil
}

// Form implements Meter.
func (m SlidingWindow) Form() string { return fmt.Sprintf("sliding-%d-%d", m.tier.Window, m.part) }

// String implements Meter.
func (m SlidingWindow) String() string {
	if !m.made() {
		return nothing
	}
	return fmt.Sprintf("sliding-window %s in %d parts", m.tier, m.parts)
}
