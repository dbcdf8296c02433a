package meter

import "github.com/mailgate/mailgate/throttle"

// Record puts on record what was admitted elsewhere, as a throttle.Recorder does, and
// reports whether there is a new state to keep. A send that is late counts as of its own
// time, also where others came since; package meter's documentation says how. In a queue
// it has a place like any other, though its mail has left.
//
// Sends may be told in any order. For those of old times a state has to be kept also when by
// now it says nothing.
func Record(m Meter, s *State, a throttle.Admission, now int64) (changed bool) {
	if a.At < 0 {
		return false
	}
	clock := max(now, s.At)
	at := clock - (now - min(a.At, now)) // as much before the moment that counts as it was before now
	if m.left(at, clock) {
		return false
	}
	return m.record(s, a.ID, at, clock)
}

// RecordKept is for how many milliseconds longer a state is kept that has been recorded
// in, for the sends of that time that are still to come.
const RecordKept = 3_600_000

// mostCounted is how many sends of a window can be on record, in four bytes. Only what was
// admitted elsewhere comes to more than a limit.
const mostCounted = 1<<32 - 1

func (m FixedWindow) left(at, clock int64) bool { return at-at%m.tier.Window+m.tier.Window <= clock }

func (m SlidingWindow) left(at, clock int64) bool {
	return !m.weighs(throttle.Admission{At: at}, clock)
}

// left is never so: how long a send counts depends on those that came after it.
func (*bucket) left(int64, int64) bool { return false }

func (m *fixedWindow) record(s *State, id throttle.ID, at, _ int64) (changed bool) {
	_, start, used := m.at(s, at)
	if start == s.At && s.find(id) >= 0 || used >= mostCounted {
		return false
	}
	m.add(s, start, used)
	s.insert(id, at)
	s.forget(max(0, len(s.Held)-m.held))
	return true
}

// record counts the send in the part of its time. That part may lie before the oldest in the
// state.
func (m *slidingWindow) record(s *State, id throttle.ID, at, _ int64) (changed bool) {
	clock, gone, used := m.at(s, at)
	if i := s.find(id); i >= 0 && m.weighs(s.Held[i], clock) || used >= mostCounted {
		return false
	}
	m.advance(s, gone, clock)
	part := int((at - at%m.part - m.oldest(s)) / m.part)
	if part < 0 {
		s.Parts, part = append(make([]int64, -part), s.Parts...), 0
	}
	s.Parts[part]++
	s.Count = used + 1
	m.forgetLight(s, clock)
	if m.remembers(s, at, used) {
		s.insert(id, at)
		s.forget(max(0, len(s.Held)-m.held))
	}
	return true
}

// remembers reports whether a send is to be remembered. Where some that count are not, they are
// the oldest, and stay so: then what is left of the others is known by its number alone.
func (m *slidingWindow) remembers(s *State, at, used int64) bool {
	oldest := s.At
	if len(s.Held) > 0 {
		oldest = s.Held[0].At
	}
	return at >= oldest || used == int64(len(s.Held))
}
