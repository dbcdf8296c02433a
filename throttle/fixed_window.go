package throttle

import "encoding/binary"

// FixedWindow counts sends from one full window of the clock to the next: a window of 24h
// begins at midnight UTC.
//
//	start  = at - at mod window
//	admits   while count < limit
//	waits    until start + window, where the count begins at 0 again
//
// Never more than the limit between two full windows, but up to twice the limit in a
// window's length across the edge between them.
//
// The state is 16 bytes: 8 of the window's start and 8 of its count.
type FixedWindow struct{ counter }

// NewFixedWindow checks the tier. The error is one sentence that names what is wrong.
func NewFixedWindow(t Tier) (FixedWindow, error) {
	c, err := newCounter(t)
	return FixedWindow{c}, err
}

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

func (c windowCount) bytes() []byte {
	state := binary.BigEndian.AppendUint64(nil, uint64(c.start))
	return binary.BigEndian.AppendUint64(state, uint64(c.count))
}

// current is the window at the moment that counts. A clock behind the window on record
// counts as its start.
func (w FixedWindow) current(state []byte, now int64) (c windowCount, clock int64) {
	c = readWindowCount(state)
	clock = max(now, c.start)
	if clock-c.start >= w.window() {
		c = windowCount{start: w.startOf(clock)}
	}
	return c, clock
}

func (w FixedWindow) startOf(at int64) int64 { return at - at%w.window() }

// Take implements [Algorithm].
func (w FixedWindow) Take(state []byte, a Admission) (next []byte, v Verdict) {
	return takeCounted(w, state, a.At)
}

// Peek implements [Algorithm].
func (w FixedWindow) Peek(state []byte, now int64) Verdict {
	c, clock := w.current(state, now)
	refill := int64(0)
	if c.count > 0 {
		refill = c.start + w.window() - clock
	}
	v := newVerdict(now, clock, w.state(c.count, refill))
	v.Sent = int(c.count)
	return v
}

// Release implements [Algorithm].
func (w FixedWindow) Release(state []byte, a Admission) (next []byte, released bool) {
	c := readWindowCount(state)
	if w.startOf(a.At) != c.start || c.count == 0 {
		return state, false
	}
	c.count--
	return c.bytes(), true
}

// Record implements [Algorithm].
func (w FixedWindow) Record(state []byte, a Admission, now int64) (next []byte) {
	c, clock := w.current(state, now)
	if a.At < 0 || w.startOf(min(a.At, clock)) != c.start {
		return state
	}
	c.count++
	return c.bytes()
}

// Expires implements [Algorithm].
func (w FixedWindow) Expires(state []byte) int64 {
	return readWindowCount(state).start + w.window() + grace
}

// Form implements [Algorithm].
func (w FixedWindow) Form() string { return w.form("fixed-%d", w.window()) }

// String implements [Algorithm].
func (w FixedWindow) String() string { return "fixed-window " + w.tier.String() }
