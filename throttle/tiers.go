package throttle

import (
	"encoding/binary"
	"iter"
	"slices"
)

// A Policy counts by a sliding log: every send inside the longest window is on record with
// its id and its millisecond.
//
//	a tier counts the sends with  at - send < window
//	it admits while               count < limit
//	it waits until                the limit-th newest send leaves its window
//
// Never more than the limit of each tier in any window of its length, wherever it begins. One
// millisecond before a wait is over the answer is a refusal, and at its end an admission.
//
// The earliest moment that can count is that of the newest send on record, and the end of
// the windows of all sends that were forgotten. So a released send leaves no trace, and what
// was forgotten to make room for it does not count again.
//
// The state is 14 bytes for each send, oldest first: 6 of milliseconds and 8 of id. Where
// sends were forgotten, one more entry with an id of eight zero bytes is the end of their
// windows, in order of time.

const entrySize = 14

// maxMoment is the last millisecond that an entry can hold, in the year 10889.
const maxMoment = 1<<48 - 1

// sendLog is the state of a Policy.
type sendLog struct {
	sends     History
	forgotten int64 // the end of the windows of all that was forgotten
}

func readLog(state []byte) (log sendLog) {
	log.sends = make(History, 0, len(state)/entrySize+1)
	for ; len(state) >= entrySize; state = state[entrySize:] {
		at := int64(binary.BigEndian.Uint64(state) >> 16)
		if id := ID(state[6:entrySize]); id != (ID{}) {
			log.sends = append(log.sends, Admission{ID: id, At: at})
		} else {
			log.forgotten = at
		}
	}
	return log
}

// clock is the moment that counts.
func (log sendLog) clock(now int64) int64 {
	return min(max(now, log.sends.newest(), log.forgotten), maxMoment)
}

// write forgets what has left the longest window by the newest send, and returns the state.
func (p Policy) write(log sendLog) []byte {
	kept := log.sends.within(p.Longest(), log.sends.newest())
	if gone := len(log.sends) - len(kept); gone > 0 {
		log.forgotten = max(log.forgotten, log.sends[gone-1].At+p.Longest())
	}
	entries := kept[max(0, len(kept)-p.Kept()):]
	if log.forgotten > 0 {
		entries = slices.Clip(entries).insert(Admission{At: log.forgotten}) // not in log.sends
	}
	var state []byte
	for _, a := range entries {
		state = binary.BigEndian.AppendUint16(state, uint16(a.At>>32))
		state = binary.BigEndian.AppendUint32(state, uint32(a.At))
		state = append(state, a.ID[:]...)
	}
	return state
}

// Take implements [Algorithm]. An id that is on record is admitted again without a second
// charge, and the verdict's At is the moment of its first admission.
func (p Policy) Take(state []byte, a Admission) (next []byte, v Verdict) {
	log := readLog(state)
	clock := log.clock(a.At)
	live := log.sends.within(p.Longest(), clock)
	if i := live.Find(a.ID); i >= 0 {
		v = p.verdict(log, a.At)
		v.Allowed, v.At = true, live[i].At
		return state, v
	}
	if v = p.verdict(log, a.At); !v.Allowed {
		return state, v
	}
	log.sends = append(log.sends, Admission{ID: a.ID, At: clock})
	next = p.write(log)
	v = p.verdict(log, a.At)
	v.Allowed = true
	return next, v
}

// Peek implements [Algorithm].
func (p Policy) Peek(state []byte, now int64) Verdict { return p.verdict(readLog(state), now) }

// Release implements [Algorithm]. It finds the admission by its id alone.
func (p Policy) Release(state []byte, a Admission) (next []byte, released bool) {
	log := readLog(state)
	i := log.sends.Find(a.ID)
	if i < 0 {
		return state, false
	}
	log.sends = slices.Delete(log.sends, i, i+1)
	return p.write(log), true
}

// Record implements [Algorithm]. An id that is on record changes nothing.
func (p Policy) Record(state []byte, a Admission, now int64) (next []byte) {
	log := readLog(state)
	clock := log.clock(now)
	a.At = min(a.At, clock)
	if a.At < 0 || clock-a.At >= p.Longest() || log.sends.Find(a.ID) >= 0 {
		return state
	}
	log.sends = log.sends.insert(a)
	return p.write(log)
}

// Expires implements [Algorithm].
func (p Policy) Expires(state []byte) int64 {
	log := readLog(state)
	if len(log.sends) == 0 {
		return log.forgotten + grace
	}
	return max(log.sends.newest()+p.Longest(), log.forgotten) + grace
}

// Form implements [Algorithm].
func (p Policy) Form() string {
	if p.IsZero() {
		return ""
	}
	return "tiers"
}

// History returns the sends in a state that are inside the longest window.
func (p Policy) History(state []byte, now int64) History {
	log := readLog(state)
	return log.sends.within(p.Longest(), log.clock(now))
}

// Kept is how many sends of one key are on record at most, the newest: no fewer than any
// tier counts.
func (p Policy) Kept() int { return maxLimit }

// Replay lets the policy decide about the sends of a history again, at their own times, and
// yields the verdict on each that it would have refused. What it refuses does not count
// against later sends.
//
// A history holds what was admitted by the policy of its time, so Replay shows what a
// stricter policy would have refused, and nothing that a milder one would have admitted.
func (p Policy) Replay(h History) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		var state []byte
		for _, a := range h {
			next, v := p.Take(state, a)
			if state = next; !v.Allowed && !yield(v) {
				return
			}
		}
	}
}

// verdict is the answer to Peek at now.
func (p Policy) verdict(log sendLog, now int64) Verdict {
	clock := log.clock(now)
	tiers := make([]TierState, len(p.tiers))
	for i, t := range p.tiers {
		tiers[i] = t.state(log.sends.within(t.ms(), clock), clock)
	}
	v := newVerdict(now, clock, tiers...)
	live := log.sends.within(p.Longest(), clock)
	v.Sent, v.Newest = len(live), live.newest()
	return v
}

// state is the tier with these sends inside its window.
func (t Tier) state(inside History, clock int64) TierState {
	s := TierState{Tier: t, Remaining: max(0, t.Limit-len(inside))}
	switch {
	case s.Remaining == 0:
		s.Wait = inside[len(inside)-t.Limit].At + t.ms() - clock
		s.Refill = s.Wait
	case len(inside) > 0:
		s.Refill = inside[0].At + t.ms() - clock
	}
	return s
}
