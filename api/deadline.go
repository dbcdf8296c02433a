package api

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines are the contexts of requests, which end after a length of time. Requests that begin within a
// hundredth of it have one context, as one with a timer for each costs more than a decision does. So a
// context lasts for 99 to 100 percent of the length.
type deadlines struct {
	parent context.Context
	length time.Duration
	newest atomic.Pointer[deadline]
}

type deadline struct {
	context.Context
	began time.Time
}

// from returns the context of a request that begins now.
func (d *deadlines) from(now time.Time) context.Context {
	newest := d.newest.Load()
	if newest == nil || now.Sub(newest.began) > d.length/100 {
		ctx, cancel := context.WithDeadline(d.parent, now.Add(d.length))
		context.AfterFunc(ctx, cancel) // it is not known when the last request with it has ended
		newest = &deadline{ctx, now}
		d.newest.Store(newest)
	}
	return newest.Context
}
