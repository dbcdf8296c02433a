package throttle

import "sort"

// An Admission is one recorded send: its reservation and when it was admitted.
type Admission struct {
	ID ID
	At int64 // milliseconds since 1970
}

// A History is the admissions of one mailbox, oldest first. It is a value: With and
// Without return a new one, so a History that was handed out never changes, as long
// as nobody writes to its elements. The nil History is a mailbox without sends.
type History []Admission

// Newest is when the last send was admitted, 0 if there was none.
func (h History) Newest() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].At
}

// Clock is the moment that counts for this history: now, or the newest admission
// when the clock has stepped back behind it. So no window reopens and none grows.
func (h History) Clock(now int64) int64 { return max(now, h.Newest()) }

// Find returns the index of a reservation, -1 if it is not on record.
func (h History) Find(id ID) int {
	for i := range h {
		if h[i].ID == id {
			return i
		}
	}
	return -1
}

// Within returns the part of the history that is inside a window of so many
// milliseconds at now. It shares the history's memory.
func (h History) Within(window, now int64) History {
	now = h.Clock(now)
	for i := range h {
		if now-h[i].At < window {
			return h[i:]
		}
	}
	return h[len(h):]
}

// With returns the history with one more admission, at [History.Clock] of now, and
// without what has left the policy's longest window. It does not ask whether the
// policy admits the send: that is [Decide].
func (h History) With(p Policy, id ID, now int64) History {
	kept := h.Within(p.Longest(), now)
	next := make(History, len(kept)+1)
	copy(next, kept)
	next[len(kept)] = Admission{ID: id, At: h.Clock(now)}
	return next
}

// Including returns the history with an admission that was made elsewhere, in its place in
// time, and whether that changed anything: not if its id is on record or it has left the
// policy's longest window. Only the newest [MaxLimit] sends are kept, as no tier counts
// more. An admission ahead of [History.Clock] of now counts as then.
func (h History) Including(p Policy, a Admission, now int64) (History, bool) {
	clock := h.Clock(now)
	a.At = min(a.At, clock)
	kept := h.Within(p.Longest(), now)
	if a.At < 0 || clock-a.At >= p.Longest() || kept.Find(a.ID) >= 0 {
		return h, false
	}
	place := sort.Search(len(kept), func(i int) bool { return kept[i].At > a.At })
	if place == 0 && len(kept) >= MaxLimit {
		return h, false
	}
	next := make(History, 0, len(kept)+1)
	next = append(append(append(next, kept[:place]...), a), kept[place:]...)
	return next[max(0, len(next)-MaxLimit):], true
}

// Without returns the history with one admission given back, and whether it was on
// record.
func (h History) Without(id ID) (History, bool) {
	i := h.Find(id)
	if i < 0 {
		return h, false
	}
	next := make(History, 0, len(h)-1)
	return append(append(next, h[:i]...), h[i+1:]...), true
}
