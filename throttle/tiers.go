package throttle

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// entrySize is the length of one send in a state.
const entrySize = 14

// maxMoment is the last millisecond that an entry can hold, in the year 10889.
const maxMoment = 1<<48 - 1

func readHistory(state []byte) History {
	h := make(History, 0, len(state)/entrySize+1)
	for ; len(state) >= entrySize; state = state[entrySize:] {
		h = append(h, Admission{ID: ID(state[6:entrySize]), At: int64(binary.BigEndian.Uint64(state) >> 16)})
	}
	return h
}

// clock returns the moment that counts.
func (h History) clock(now int64) int64 { return min(max(now, h.newest()), maxMoment) }

// write forgets what has left the longest window by the newest send, and returns the state.
func (p Policy) write(h History) (state []byte) {
	h = h.within(p.Window(), h.newest())
	for _, a := range h[max(0, len(h)-MaxKept):] {
		state = binary.BigEndian.AppendUint16(state, uint16(a.At>>32))
		state = binary.BigEndian.AppendUint32(state, uint32(a.At))
		state = append(state, a.ID[:]...)
	}
	return state
}

// Take implements [Algorithm]. An id that is on record is admitted again without a second
// charge, and the verdict's Admission is its first.
func (p Policy) Take(state []byte, a Admission) (next []byte, v Verdict) {
	h := readHistory(state)
	v = p.verdict(h, a.At)
	if i := h.find(a.ID); i >= 0 && v.At-h[i].At < p.Window() {
		v.Allowed, v.At, v.Admission = true, h[i].At, h[i]
		return state, v
	}
	if !v.Allowed {
		return state, v
	}
	a.At, h = v.At, append(h, Admission{ID: a.ID, At: v.At})
	v = p.verdict(h, v.Now)
	v.Allowed, v.Admission = true, a
	return p.write(h), v
}

func (p Policy) Peek(state []byte, now int64) Verdict { return p.verdict(readHistory(state), now) }

// Release implements [Algorithm]. It finds the admission by its id alone.
func (p Policy) Release(state []byte, a Admission) (next []byte, released bool) {
	h := readHistory(state)
	i := h.find(a.ID)
	if i < 0 {
		return state, false
	}
	return p.write(slices.Delete(h, i, i+1)), true
}

// Record implements [Algorithm]. An id that is on record changes nothing.
func (p Policy) Record(state []byte, a Admission, now int64) (next []byte) {
	h := readHistory(state)
	clock := h.clock(now)
	a.At = min(a.At, clock)
	if a.At < 0 || clock-a.At >= p.Window() || h.find(a.ID) >= 0 {
		return state
	}
	i, _ := slices.BinarySearchFunc(h, a.At, func(b Admission, at int64) int { return cmp.Compare(b.At, at) })
	return p.write(slices.Insert(h, i, a))
}

func (p Policy) Expires(state []byte) int64 { return readHistory(state).newest() + p.Window() + grace }

func (p Policy) Form() string {
	if len(p.tiers) == 0 {
		return ""
	}
	return "tiers"
}

// History returns the sends in a state that are inside the longest window.
func (p Policy) History(state []byte, now int64) History {
	h := readHistory(state)
	return h.within(p.Window(), h.clock(now))
}

// verdict returns the answer to Peek at now.
func (p Policy) verdict(h History, now int64) Verdict {
	clock := h.clock(now)
	tiers := make([]TierState, len(p.tiers))
	for i, t := range p.tiers {
		tiers[i] = t.state(h.within(t.ms(), clock), clock)
	}
	v := newVerdict(now, clock, tiers...)
	live := h.within(p.Window(), clock)
	v.Sent, v.Newest = len(live), live.newest()
	return v
}

// state returns the tier with these sends inside its window.
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
