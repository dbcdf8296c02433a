package redisx

import (
	"sync/atomic"
	"time"
)

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

// Clock is that of a master, by the answers that told it: never ahead of it, and behind by no more than the quickest of
// them took.
type Clock struct {
	ahead atomic.Int64 // microseconds since 1970 when this process began, at least; 0: not heard
}

// Hear takes the milliseconds since 1970 that an answer told which has just come, and when it was asked for. What is known
// is kept where the answer came later, and tells less, but not where it is impossible: then the clock was set, or runs slower.
func (c *Clock) Hear(now int64, asked time.Time) {
	least, most := now*1000-time.Since(began).Microseconds(), now*1000+999-asked.Sub(began).Microseconds()
	for {
		known := c.ahead.Load()
		if least <= known && known <= most || c.ahead.CompareAndSwap(known, least) {
			return
		}
	}
}

// Now returns a millisecond since 1970 that the clock has reached just now or shortly before, 0 if it was not heard.
func (c *Clock) Now() int64 { return c.in(0) }

// in is what Now will be after some time.
func (c *Clock) in(after time.Duration) int64 {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ((time.Since(began) + after).Microseconds() + ahead) / 1000
}
