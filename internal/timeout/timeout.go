// Package timeout makes contexts that end after a length of time.
package timeout

import (
	"context"
	"sync/atomic"
	"time"
)

// Group makes contexts that last for 99 to 100 percent of Length. Those of one parent that begin within a
// hundredth of it are one context: a timer for each call would add a tenth to a decision in Redis.
type Group struct {
	Length time.Duration
	Cause  error // of the end; nil means context.DeadlineExceeded

	newest atomic.Pointer[member]
}

type member struct {
	context.Context
	parent context.Context
	began  time.Time
}

// From returns a context that ends Length after began, or with parent.
func (g *Group) From(parent context.Context, began time.Time) context.Context {
	if m := g.newest.Load(); m != nil && m.parent == parent {
		if later := began.Sub(m.began); later >= 0 && later <= g.Length/100 {
			return m.Context
		}
	}
	ctx, cancel := context.WithDeadlineCause(parent, began.Add(g.Length), g.Cause)
	context.AfterFunc(ctx, cancel) // it is not known when its last user has ended
	g.newest.Store(&member{ctx, parent, began})
	return ctx
}
