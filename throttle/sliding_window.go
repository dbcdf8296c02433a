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
// The promise at the edge: never more than the limit in any window of its length, wherever
// it begins; a send may count longer than the window, by less than one part. With parts of
// one millisecond the count is exact.
//
// The state is 12 bytes for each part that has sends, oldest first: 8 of its start and 4 of
// its count. The newest part stays when its sends are released, with a count of 0.
type SlidingWindow struct {
	tier Tier
	part int64 // milliseconds
}

const (
	defaultParts = 60 // a window of a minute goes by the second
	maxParts     = 1000
	partSize     = 12
)

// NewSlidingWindow checks the parameters; 0 parts are 60. A window that cannot be divided
// evenly has parts that are rounded up to whole milliseconds.
func NewSlidingWindow(t Tier, parts int) (SlidingWindow, error) {
	if err := checkCounted(t); err != nil {
		return SlidingWindow{}, err
	}
	if parts == 0 {
		parts = defaultParts
	}
	if parts < 1 || parts > maxParts {
		return SlidingWindow{}, fmt.Errorf("tier %s: a window has between 1 and %d parts, not %d", t.Name, maxParts, parts)
	}
	return SlidingWindow{tier: t, part: ceilDiv(t.ms(), int64(parts))}, nil
}

// Tier is the limit and its window.
func (w SlidingWindow) Tier() Tier { return w.tier }

// Part is the length of a part in milliseconds.
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

// write is the state without the parts that have left for good, and those without sends,
// except for the newest.
func (w SlidingWindow) write(parts []partCount) (state []byte, expires int64) {
	newest := parts[len(parts)-1]
	for _, p := range parts {
		if p == newest || p.count > 0 && w.leaves(p) > newest.start {
			state = binary.BigEndian.AppendUint64(state, uint64(p.start))
			state = binary.BigEndian.AppendUint32(state, uint32(p.count))
		}
	}
	return state, w.expires(state)
}

func (w SlidingWindow) expires(state []byte) int64 {
	parts := readParts(state)
	if len(parts) == 0 {
		return 0
	}
	return w.leaves(parts[len(parts)-1]) + grace
}

func (w SlidingWindow) leaves(p partCount) int64 { return p.start + w.part - 1 + w.tier.ms() }

func (w SlidingWindow) startOf(at int64) int64 { return at - at%w.part }

// current is the parts on record, those of them that have not left, and the moment that
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

// add counts one send more in the part of its moment.
func (w SlidingWindow) add(parts []partCount, at int64) []partCount {
	i, found := w.find(parts, at)
	if !found {
		parts = slices.Insert(parts, i, partCount{start: w.startOf(at)})
	}
	parts[i].count = min(parts[i].count+1, math.MaxUint32)
	return parts
}

// Take implements [Algorithm].
func (w SlidingWindow) Take(state []byte, a Admission) (next []byte, expires int64, v Verdict) {
	parts, live, clock := w.current(state, a.At)
	if v = w.verdict(live, a.At, clock); !v.Allowed {
		return state, w.expires(state), v
	}
	next, expires = w.write(w.add(parts, clock))
	return next, expires, admitted(w.Peek(next, a.At))
}

// Peek implements [Algorithm].
func (w SlidingWindow) Peek(state []byte, now int64) Verdict {
	_, live, clock := w.current(state, now)
	return w.verdict(live, now, clock)
}

// Release implements [Algorithm].
func (w SlidingWindow) Release(state []byte, a Admission) (next []byte, expires int64, released bool) {
	parts := readParts(state)
	i, found := w.find(parts, a.At)
	if !found || parts[i].count == 0 {
		return state, w.expires(state), false
	}
	parts[i].count--
	next, expires = w.write(parts)
	return next, expires, true
}

// Record implements [Algorithm].
func (w SlidingWindow) Record(state []byte, a Admission, now int64) (next []byte, expires int64) {
	parts, _, clock := w.current(state, now)
	at := min(a.At, clock)
	if at < 0 || w.leaves(partCount{start: w.startOf(at)}) <= clock {
		return state, w.expires(state)
	}
	return w.write(w.add(parts, at))
}

// Used implements [Algorithm].
func (w SlidingWindow) Used(state []byte, now int64) (used int) {
	_, live, _ := w.current(state, now)
	for _, p := range live {
		used += int(p.count)
	}
	return used
}

// Form implements [Algorithm].
func (w SlidingWindow) Form() string {
	if w.part == 0 {
		return ""
	}
	return fmt.Sprintf("sliding-%d-%d", w.tier.ms(), w.part)
}

// String implements [Algorithm].
func (w SlidingWindow) String() string {
	return fmt.Sprintf("sliding-window %s in parts of %d ms", w.tier, w.part)
}

// verdict is the answer to Peek with these parts, none of which has left.
func (w SlidingWindow) verdict(live []partCount, now, clock int64) Verdict {
	used := int64(0)
	for _, p := range live {
		used += p.count
	}
	limit := int64(w.tier.Limit)
	t := TierState{Tier: w.tier, Remaining: int(max(0, limit-used))}
	for _, p := range live {
		if p.count == 0 {
			continue
		}
		// Remaining grows when this part leaves, unless there is more than the limit.
		if used -= p.count; used < limit {
			t.Refill = w.leaves(p) - clock
			break
		}
	}
	if t.Remaining == 0 {
		t.Wait = t.Refill
	}
	return newVerdict(now, clock, t)
}
