package throttle

import "slices"

// Admission is one recorded send: its id and when it was admitted.
type Admission struct {
	ID ID
	At int64 // milliseconds since 1970
}

// History is the sends of one key, oldest first.
type History []Admission

// newest returns when the last send was admitted, or 0.
func (h History) newest() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].At
}

// find returns the index of an id, -1 if it is not there.
func (h History) find(id ID) int {
	return slices.IndexFunc(h, func(a Admission) bool { return a.ID == id })
}

// within returns the part of the history that a window of this many milliseconds holds at a
// moment that is not before the newest send. It shares the history's memory.
func (h History) within(window, at int64) History {
	for i := range h {
		if at-h[i].At < window {
			return h[i:]
		}
	}
	return nil
}
