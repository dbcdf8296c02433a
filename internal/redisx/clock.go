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

// Hear takes the milliseconds that an answer told, and when it was asked for. What is known already holds, as an answer that
// came late tells less, until one contradicts it: then the clock was set, or has drifted.
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
func (c *Clock) Now() int64 { return c.at(time.Now()) }

// at is Now of another moment.
func (c *Clock) at(moment time.Time) int64 {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return (moment.Sub(began).Microseconds() + ahead) / 1000
}
