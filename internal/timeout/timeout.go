// Package timeout makes contexts that end after a length of time.
package timeout

import (
	"context"
	"sync/atomic"
	"time"
)

// Group makes contexts that last for 99 to 100 percent of Length. Those that begin within a hundredth of it,
// of parents that end together, are one context with the values of the first: a timer for each call would add
// a tenth to a decision in Redis. A context and those that add values to it end together.
type Group struct {
	Length time.Duration
	Cause  error // of the end; nil means context.DeadlineExceeded

	newest atomic.Pointer[[ends]member] // one for each end of parents, the last made first
}

// ends is how many ends of parents are told apart at a time. Calls to Redis have three: of requests that
// began just now, of those that began shortly before, and of the client's pipeline.
const ends = 4

type member struct {
	context.Context
	parent <-chan struct{} // closed when the parent ends
	began  time.Time
}

// From returns a context that ends Length after began, or with parent.
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
