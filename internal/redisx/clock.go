package redisx

import (
	"sync/atomic"
	"time"
)

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

// Clock estimates the clock of a Redis server from its answers. It is not ahead of that clock, and behind it by at most the
// time that the quickest answer took.
type Clock struct {
	ahead atomic.Int64 // its microseconds since 1970 when this process began, at least; 0 before the first answer
}

// Hear updates the estimate from an answer that has just arrived. now is the server's time in milliseconds since 1970, and
// asked is when the question was sent. A slow answer tells less than the estimate, which is then kept. If the estimate is
// impossible by the answer, the server's clock was set or runs slower, and the answer replaces it.
func (c *Clock) Hear(now int64, asked time.Time) {
	least, most := now*1000-time.Since(began).Microseconds(), now*1000+999-asked.Sub(began).Microseconds()
	for {
		known := c.ahead.Load()
		if least <= known && known <= most {
			return
		}
		if c.ahead.CompareAndSwap(known, least) {
			return
		}
	}
}

// Now returns the estimate in milliseconds since 1970, 0 before the first answer.
func (c *Clock) Now() int64 { return c.in(0) }

// in is what Now will be after some time.
func (c *Clock) in(after time.Duration) int64 {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ((time.Since(began) + after).Microseconds() + ahead) / 1000
}
