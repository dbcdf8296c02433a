package throttle

import (
	"encoding/binary"
	"fmt"
)

// FixedWindow counts sends from one full window of the clock to the next: a window of 24h
// begins at midnight UTC.
//
//	start  = at - at mod window
//	admits   while count < limit
//	waits    until start + window, where the count begins at 0 again
//
// The promise at the edge: never more than the limit between two full windows, but up to
// twice the limit in a window's length across the edge between them.
//
// The state is 16 bytes: 8 of the window's start and 8 of its count.
type FixedWindow struct{ tier Tier }

// NewFixedWindow checks the tier. The error is one sentence that names what is wrong.
func NewFixedWindow(t Tier) (FixedWindow, error) {
	if err := checkCounted(t); err != nil {
		return FixedWindow{}, err
	}
	return FixedWindow{tier: t}, nil
}

// Tier is the limit and its window.
func (w FixedWindow) Tier() Tier { return w.tier }

// windowCount is the state of a FixedWindow.
type windowCount struct{ start, count int64 }

func readWindowCount(state []byte) (c windowCount) {
	if len(state) != 16 {
		return c
	}
	return windowCount{
		start: int64(binary.BigEndian.Uint64(state)),
		count: int64(binary.BigEndian.Uint64(state[8:])),
	}
}

func (w FixedWindow) write(c windowCount) (state []byte, expires int64) {
	state = binary.BigEndian.AppendUint64(nil, uint64(c.start))
	state = binary.BigEndian.AppendUint64(state, uint64(c.count))
	return state, w.expires(state)
}

func (w FixedWindow) expires(state []byte) int64 {
	return readWindowCount(state).start + w.tier.ms() + grace
}

// current is the window at the moment that counts. A clock behind the window on record
// counts as its start.
func (w FixedWindow) current(state []byte, now int64) (c windowCount, clock int64) {
	c = readWindowCount(state)
	clock = max(now, c.start)
	if clock-c.start >= w.tier.ms() {
		c = windowCount{start: w.startOf(clock)}
	}
	return c, clock
}

func (w FixedWindow) startOf(at int64) int64 { return at - at%w.tier.ms() }

// Take implements [Algorithm].
func (w FixedWindow) Take(state []byte, a Admission) (next []byte, expires int64, v Verdict) {
	c, clock := w.current(state, a.At)
	if v = w.verdict(c, a.At, clock); !v.Allowed {
		return state, w.expires(state), v
	}
	c.count++
	next, expires = w.write(c)
	return next, expires, admitted(w.verdict(c, a.At, clock))
}

// Peek implements [Algorithm].
func (w FixedWindow) Peek(state []byte, now int64) Verdict {
	c, clock := w.current(state, now)
	return w.verdict(c, now, clock)
}

// Release implements [Algorithm].
func (w FixedWindow) Release(state []byte, a Admission) (next []byte, expires int64, released bool) {
	c := readWindowCount(state)
	if w.startOf(a.At) != c.start || c.count == 0 {
		return state, w.expires(state), false
	}
	c.count--
	next, expires = w.write(c)
	return next, expires, true
}

// Record implements [Algorithm].
func (w FixedWindow) Record(state []byte, a Admission, now int64) (next []byte, expires int64) {
	c, clock := w.current(state, now)
	if a.At < 0 || w.startOf(min(a.At, clock)) != c.start || c.count >= maxExact {
		return state, w.expires(state)
	}
	c.count++
	return w.write(c)
}

// Used implements [Algorithm].
func (w FixedWindow) Used(state []byte, now int64) int {
	c, _ := w.current(state, now)
	return int(c.count)
}

// Form implements [Algorithm].
func (w FixedWindow) Form() string {
	if w.tier.Limit == 0 {
		return ""
	}
	return fmt.Sprintf("fixed-%d", w.tier.ms())
}

// String implements [Algorithm].
func (w FixedWindow) String() string { return "fixed-window " + w.tier.String() }

func (w FixedWindow) verdict(c windowCount, now, clock int64) Verdict {
	t := TierState{Tier: w.tier, Remaining: int(max(0, int64(w.tier.Limit)-c.count))}
	if c.count > 0 {
		t.Refill = c.start + w.tier.ms() - clock
	}
	if t.Remaining == 0 {
		t.Wait = t.Refill
	}
	return newVerdict(now, clock, t)
}
