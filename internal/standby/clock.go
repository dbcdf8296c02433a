package standby

import (
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
)

// NewClock returns the clock of a node. It is the machine's, until New has read what an earlier process knew of Redis's, and
// Redis answers. It keeps running while Redis is away, and a step of the machine's clock does not move it.
func NewClock() *redisx.Clock {
	c := new(redisx.Clock)
	aheadOfMachine(c, 0)
	return c
}

// aheadOfMachine sets a clock some milliseconds ahead of the machine's.
func aheadOfMachine(c *redisx.Clock, offset int64) {
	now := time.Now()
	c.Hear(now.UnixMilli()+offset, now)
}
