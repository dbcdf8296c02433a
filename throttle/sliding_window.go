package throttle

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// SlidingWindow divides its window into parts of equal length and counts the sends of each
// part. A part leaves as a whole, when its last millisecond has left the window.
//
//	a part leaves at  start + part - 1 + window
//	admits            while the counts of the parts that have not left are below the limit
//	waits             until enough of the oldest parts have left
//
// It admits at most the limit in any window, wherever that begins. A send may count longer than
// the window, by less than one part. With parts of one millisecond the count is exact.
//
// The state is 12 bytes for each part that has sends, oldest first: 8 of its start and 4 of
// its count. The newest part stays when its sends are released, with a count of 0.
type SlidingWindow struct {
	counter
	part int64 // milliseconds
}

const (
	defaultParts = 60
	maxParts     = 1000
	partSize     = 12
)

// NewSlidingWindow checks the parameters; 0 parts are 60. A window that cannot be divided
// evenly has parts that are rounded up to whole milliseconds.
func NewSlidingWindow(t Tier, parts int) (SlidingWindow, error) {
	c, err := newCounter(t)
	if err != nil {
		return SlidingWindow{}, err
	}
	if parts == 0 {
		parts = defaultParts
	}
	if parts < 1 || parts > maxParts {
		return SlidingWindow{}, fmt.Errorf("tier %s: a window has between 1 and %d parts, not %d", t.Name, maxParts, parts)
	}
	part := ceilDiv(t.ms(), int64(parts))
	c.form = fmt.Sprintf("sliding-%d-%d", c.window(), part)
	return SlidingWindow{counter: c, part: part}, nil
}

// WithLimit returns the algorithm with another limit, up to the largest of a counter.
func (w SlidingWindow) WithLimit(limit int) SlidingWindow {
	w.tier.Limit = min(max(limit, 1), maxCounted)
	return w
}

// Part returns the length of a part in milliseconds.
func (w SlidingWindow) Part() int64 { return w.part }

// partCount is one part in the state of a SlidingWindow.
type partCount struct{ start, count int64 }

func readParts(state []byte) []partCount {
	parts := make([]partCount, 0, len(state)/partSize+1)
	for ; len(state) >= partSize; state = state[partSize:] {
		parts = append(parts, partCount{
			start: int64(binary.BigEndian.Uint64(state)),
			count: int64(binary.BigEndian.Uint32(state[8:])),
		})
	}
	return parts
}

// write returns the state without the parts that have left for good, and those without sends,
// except for the newest.
func (w SlidingWindow) write(parts []partCount) (state []byte) {
	newest := parts[len(parts)-1]
	for _, p := range parts {
		if p == newest || p.count > 0 && w.leaves(p) > newest.start {
			state = binary.BigEndian.AppendUint64(state, uint64(p.start))
			state = binary.BigEndian.AppendUint32(state, uint32(p.count))
		}
	}
	return state
}

func (w SlidingWindow) leaves(p partCount) int64 { return p.start + w.part - 1 + w.window() }

func (w SlidingWindow) startOf(at int64) int64 { return at - at%w.part }

// current returns the parts on record, those of them that have not left, and the moment that
// counts. A clock behind the newest part is at its start.
func (w SlidingWindow) current(state []byte, now int64) (parts, live []partCount, clock int64) {
	parts, clock = readParts(state), max(now, 0)
	if len(parts) > 0 {
		clock = max(clock, parts[len(parts)-1].start)
	}
	live = parts
	for len(live) > 0 && w.leaves(live[0]) <= clock {
		live = live[1:]
	}
	return parts, live, clock
}

// find returns the index of the part of a moment, or where it would be.
func (w SlidingWindow) find(parts []partCount, at int64) (i int, found bool) {
	return slices.BinarySearchFunc(parts, w.startOf(at), func(p partCount, start int64) int {
		return cmp.Compare(p.start, start)
	})
}

func (w SlidingWindow) Take(state []byte, a Admission) (next []byte, v Verdict) {
	return takeCounted(w, state, a)
}

func (w SlidingWindow) Peek(state []byte, now int64) Verdict {
	_, live, clock := w.current(state, now)
	used := int64(0)
	for _, p := range live {
		used += p.count
	}
	// Remaining grows when this many sends have left, more than one if they exceed the limit.
	left, refill := max(1, used-w.limit()+1), int64(0)
	for _, p := range live {
		if left -= p.count; left <= 0 {
			refill = w.leaves(p) - clock
			break
		}
	}
	v := newVerdict(now, clock, w.state(used, refill))
	v.Sent = int(used)
	return v
}

func (w SlidingWindow) Release(state []byte, a Admission) (next []byte, released bool) {
	parts := readParts(state)
	i, found := w.find(parts, a.At)
	if !found || parts[i].count == 0 {
		return state, false
	}
	parts[i].count--
	return w.write(parts), true
}

func (w SlidingWindow) Record(state []byte, a Admission, now int64) (next []byte) {
	parts, _, clock := w.current(state, now)
	part := partCount{start: w.startOf(min(a.At, clock))}
	if a.At < 0 || w.leaves(part) <= clock {
		return state
	}
	i, found := w.find(parts, part.start)
	if !found {
		parts = slices.Insert(parts, i, part)
	}
	parts[i].count = min(parts[i].count+1, math.MaxUint32)
	return w.write(parts)
}

func (w SlidingWindow) Expires(state []byte) int64 {
	parts := readParts(state)
	if len(parts) == 0 {
		return 0
	}
	return w.leaves(parts[len(parts)-1]) + grace
}

func (w SlidingWindow) String() string {
	return fmt.Sprintf("sliding-window %s in parts of %d ms", w.tier, w.part)
}
