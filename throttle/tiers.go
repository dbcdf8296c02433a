package throttle

import (
	"encoding/binary"
	"iter"
	"slices"
	"sort"
)

// A Policy counts by a sliding log: every send inside the longest window is on record with
// its id and its millisecond.
//
//	a tier counts the sends with  at - send < window
//	it admits while               count < limit
//	it waits until                the limit-th newest send leaves its window
//
// The promise at the edge: never more than the limit of each tier in any window of its
// length, wherever it begins. One millisecond before a wait is over the answer is a refusal,
// and at its end an admission.
//
// The earliest moment that can count is that of the newest send on record, and the end of
// the windows of all sends that were forgotten. So a released send is as if it had never been,
// and what was forgotten to make room for it counts no more.
//
// The state is 14 bytes for each send, oldest first: 6 of milliseconds and 8 of id. Where
// sends were forgotten, one more entry with an id of eight zero bytes is the end of their
// windows, at its place in time.

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
	return min(max(now, log.sends.Newest(), log.forgotten), maxMoment)
}

// write forgets what has left the longest window by the newest send, and returns the state.
func (p Policy) write(log sendLog) (state []byte, expires int64) {
	kept := log.sends.within(p.Longest(), log.sends.Newest())
	if gone := len(log.sends) - len(kept); gone > 0 {
		log.forgotten = max(log.forgotten, log.sends[gone-1].At+p.Longest())
	}
	log.sends = kept[max(0, len(kept)-p.Kept()):]
	marked := log.forgotten == 0
	state = make([]byte, 0, (len(log.sends)+1)*entrySize)
	for _, a := range log.sends {
		if !marked && a.At >= log.forgotten {
			state, marked = appendEntry(state, Admission{At: log.forgotten}), true
		}
		state = appendEntry(state, a)
	}
	if !marked {
		state = appendEntry(state, Admission{At: log.forgotten})
	}
	if len(state) == 0 {
		return nil, 0
	}
	return state, p.expires(log)
}

func appendEntry(state []byte, a Admission) []byte {
	state = binary.BigEndian.AppendUint16(state, uint16(a.At>>32))
	state = binary.BigEndian.AppendUint32(state, uint32(a.At))
	return append(state, a.ID[:]...)
}

func (p Policy) expires(log sendLog) int64 {
	if len(log.sends) == 0 {
		return log.forgotten + grace
	}
	return max(log.sends.Newest()+p.Longest(), log.forgotten) + grace
}

// Take implements [Algorithm]. An id that is on record is admitted again without a second
// charge, and the verdict's At is the moment of its first admission.
func (p Policy) Take(state []byte, a Admission) (next []byte, expires int64, v Verdict) {
	log := readLog(state)
	clock := log.clock(a.At)
	if live := log.sends.within(p.Longest(), clock); live.Find(a.ID) >= 0 {
		v = admitted(p.verdict(log, a.At))
		v.At = live[live.Find(a.ID)].At
		return state, p.expires(log), v
	}
	if v = p.verdict(log, a.At); !v.Allowed {
		return state, p.expires(log), v
	}
	log.sends = append(log.sends, Admission{ID: a.ID, At: clock})
	next, expires = p.write(log)
	return next, expires, admitted(p.verdict(log, a.At))
}

// Peek implements [Algorithm].
func (p Policy) Peek(state []byte, now int64) Verdict { return p.verdict(readLog(state), now) }

// Release implements [Algorithm]. It finds the admission by its id alone.
func (p Policy) Release(state []byte, a Admission) (next []byte, expires int64, released bool) {
	log := readLog(state)
	i := log.sends.Find(a.ID)
	if i < 0 {
		return state, p.expires(log), false
	}
	log.sends = slices.Delete(log.sends, i, i+1)
	next, expires = p.write(log)
	return next, expires, true
}

// Record implements [Algorithm]. An id that is on record changes nothing.
func (p Policy) Record(state []byte, a Admission, now int64) (next []byte, expires int64) {
	log := readLog(state)
	clock := log.clock(now)
	a.At = min(a.At, clock)
	if a.At < 0 || clock-a.At >= p.Longest() || log.sends.Find(a.ID) >= 0 {
		return state, p.expires(log)
	}
	i := sort.Search(len(log.sends), func(i int) bool { return log.sends[i].At > a.At })
	log.sends = slices.Insert(log.sends, i, a)
	return p.write(log)
}

// Used implements [Algorithm].
func (p Policy) Used(state []byte, now int64) int { return len(p.History(state, now)) }

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
			next, _, v := p.Take(state, a)
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
	v.Sent, v.Newest = len(live), live.Newest()
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
