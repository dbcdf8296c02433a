package meter

import "github.com/mailgate/mailgate/throttle"

// Record puts on record what was admitted elsewhere, as a throttle.Recorder does, and
// reports whether there is a new state to keep. It is the Take of that time, so the newest
// moment on record counts where that is later, and what finds the limit full is not
// counted. In a queue the send has a place like any other, though its mail has left.
//
// Sends that are recorded in the order of their times count as they did where they were
// admitted. For that a state has to be kept also when by now it says nothing.
func Record(m Meter, s *State, a throttle.Admission, now int64) (changed bool) {
	at := min(a.At, now)
	if at < 0 || m.left(at, max(now, s.At)) {
		return false
	}
	_, changed = m.Take(s, a.ID, at)
	return changed
}

// RecordKept is for how many milliseconds longer a state is kept that has been recorded
// in, for the sends of that time that are still to come.
const RecordKept = 3_600_000

func (m FixedWindow) left(at, clock int64) bool { return at-at%m.tier.Window+m.tier.Window <= clock }

func (m SlidingWindow) left(at, clock int64) bool {
	return !m.weighs(throttle.Admission{At: at}, clock)
}

// left is never so: how long a send counts depends on those that came after it.
func (*bucket) left(int64, int64) bool { return false }
