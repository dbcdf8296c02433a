package throttle

import "fmt"

// FixedWindow counts sends from one full window of the clock to the next: a window of 24h
// begins at midnight UTC.
//
//	start  = at - at mod window
//	admits   while count < limit
//	waits    until start + window, where the count begins at 0 again
//
// It admits at most the limit in a full window, but up to twice the limit in a window's length
// across the edge between two.
//
// The state is 16 bytes: 8 of the window's start and 8 of its count.
type FixedWindow struct{ counter }

// NewFixedWindow checks the tier. The error is one sentence that names what is wrong.
func NewFixedWindow(t Tier) (FixedWindow, error) {
	c, err := newCounter(t)
	c.form = fmt.Sprintf("fixed-%d", c.window())
	return FixedWindow{c}, err
}

// current returns the window on record at the moment that counts. A clock behind it counts as
// its start.
func (w FixedWindow) current(state []byte, now int64) (start, count, clock int64) {
	start, count = readPair(state)
	if clock = max(now, start); clock-start >= w.window() {
		return w.startOf(clock), 0, clock
	}
	return start, count, clock
}

func (w FixedWindow) startOf(at int64) int64 { return at - at%w.window() }

func (w FixedWindow) Take(state []byte, a Admission) (next []byte, v Verdict) {
	return takeCounted(w, state, a)
}

func (w FixedWindow) Peek(state []byte, now int64) Verdict {
	start, count, clock := w.current(state, now)
	refill := int64(0)
	if count > 0 {
		refill = start + w.window() - clock
	}
	v := newVerdict(now, clock, w.state(count, refill))
	v.Sent = int(count)
	return v
}

func (w FixedWindow) Release(state []byte, a Admission) (next []byte, released bool) {
	start, count := readPair(state)
	if w.startOf(a.At) != start || count == 0 {
		return state, false
	}
	return writePair(start, count-1), true
}

func (w FixedWindow) Record(state []byte, a Admission, now int64) (next []byte) {
	start, count, clock := w.current(state, now)
	if a.At < 0 || w.startOf(min(a.At, clock)) != start {
		return state
	}
	return writePair(start, count+1)
}

func (w FixedWindow) Expires(state []byte) int64 {
	start, _ := readPair(state)
	return start + w.window() + grace
}

func (w FixedWindow) String() string { return "fixed-window " + w.tier.String() }
