package standby

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
)

// Clock is Redis's clock as this node last knew it. It runs on while Redis is away, and a step of
// the machine's clock does not move it.
type Clock struct {
	start  time.Time
	offset atomic.Int64 // milliseconds that Redis is ahead of the machine
}

// NewClock returns the machine's clock, until New has read what an earlier process knew.
func NewClock() *Clock { return &Clock{start: time.Now()} }

// Now is the clock's time in milliseconds since 1970.
func (c *Clock) Now() int64 { return c.machine() + c.offset.Load() }

func (c *Clock) machine() int64 {
	return c.start.UnixMilli() + time.Since(c.start).Milliseconds()
}

// heard notes what the clock of Redis has just said.
func (c *Clock) heard(now int64) { c.offset.Store(now - c.machine()) }

// notBefore moves the clock forward to a moment that Redis has been at.
func (c *Clock) notBefore(moment int64) {
	if behind := moment - c.Now(); behind > 0 {
		c.offset.Add(behind)
	}
}

const clockKey = "clock"

func (c *Clock) load(ctx context.Context, table *cache.Table) error {
	value, err := table.Get(ctx, clockKey)
	if err != nil || len(value) != 16 {
		return err
	}
	c.offset.Store(int64(binary.BigEndian.Uint64(value)))
	c.notBefore(int64(binary.BigEndian.Uint64(value[8:])))
	return nil
}

func (c *Clock) save(ctx context.Context, table *cache.Table) error {
	offset := c.offset.Load()
	value := binary.BigEndian.AppendUint64(nil, uint64(offset))
	value = binary.BigEndian.AppendUint64(value, uint64(c.machine()+offset))
	return table.Update(ctx, clockKey, func([]byte) ([]byte, int64) { return value, forever })
}
