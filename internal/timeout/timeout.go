// Package timeout makes contexts that end after a length of time.
package timeout

import (
	"context"
	"sync/atomic"
	"time"
)

// Group makes contexts that last for 99 to 100 percent of Length. Those that begin within a hundredth of it
// are one context, with the values of the first, if their parents end together, as a context and what adds a
// value to it do: one with a timer for each call would make a decision in Redis a tenth dearer.
type Group struct {
	Length time.Duration
	Cause  error // of the end; nil: context.DeadlineExceeded

	newest atomic.Pointer[[ends]member] // of each end of parents, the last made first
}

// ends is how many groups of parents share contexts at a time. Calls to Redis have three: the requests that
// began just now, those that began shortly before, and the client's pipeline.
const ends = 4

type member struct {
	context.Context
	parent <-chan struct{} // closed when it ends
	began  time.Time
}

// From returns the context of what began at a moment, which the end of parent ends too.
func (g *Group) From(parent context.Context, began time.Time) context.Context {
	known, done, i := g.newest.Load(), parent.Done(), 0
	if known == nil {
		known = &[ends]member{}
	}
	for i < ends-1 && known[i].parent != done {
		i++
	}
	later := began.Sub(known[i].began)
	same := known[i].Context != nil && known[i].parent == done
	if same && later >= 0 && later <= g.Length/100 {
		return known[i].Context
	}
	ctx, cancel := context.WithDeadlineCause(parent, began.Add(g.Length), g.Cause)
	context.AfterFunc(ctx, cancel) // it is not known when its last user has ended
	if !same || later >= 0 {       // else it is old already, as of a request that arrived slowly
		all := [ends]member{{ctx, done, began}}
		copy(all[1:], known[:i])
		copy(all[1+i:], known[i+1:])
		g.newest.Store(&all)
	}
	return ctx
}
