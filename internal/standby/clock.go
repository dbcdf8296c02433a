package standby

import (
	"sync/atomic"
	"time"
)

// Clock is Redis's clock as last read by this node. It keeps running while Redis is away, and a step of
// the machine's clock does not move it.
type Clock struct {
	start  time.Time
	offset atomic.Int64 // milliseconds that Redis is ahead of the machine
}

// NewClock returns the machine's clock, until New has read what an earlier process knew.
func NewClock() *Clock { return &Clock{start: time.Now()} }

// Now returns the clock's time in milliseconds since 1970.
func (c *Clock) Now() int64 { return c.machine() + c.offset.Load() }

func (c *Clock) machine() int64 { return c.start.UnixMilli() + time.Since(c.start).Milliseconds() }

// heard notes what the clock of Redis has just said.
func (c *Clock) heard(now int64) { c.offset.Store(now - c.machine()) }
