package standby

import (
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
)

// Clock is Redis's clock as this node has read it. It keeps running while Redis is away, and a step of the machine's clock
// does not move it.
type Clock struct {
	redisx.Clock
	machine int64 // milliseconds since 1970 at start, by the machine's clock
	start   time.Time
	offset  atomic.Int64 // milliseconds that Redis was ahead of the machine, as an earlier process knew
}

// NewClock returns the machine's clock, until New has read what an earlier process knew.
func NewClock() *Clock { return &Clock{machine: time.Now().UnixMilli(), start: time.Now()} }

// Now returns the clock's time in milliseconds since 1970.
func (c *Clock) Now() int64 {
	if now := c.Clock.Now(); now != 0 {
		return now
	}
	return c.machine + time.Since(c.start).Milliseconds() + c.offset.Load()
}
