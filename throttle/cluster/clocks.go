package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clocks are the clocks of a client's masters, as last read.
type clocks struct {
	client redis.UniversalClient
	since  func() int64 // microseconds since began
	all    sync.Map     // a master's address to its *clock
}

// clock is that of a master: between how many microseconds it was ahead of the time since began.
type clock struct{ least, most atomic.Int64 }

// maxApart is how far apart the two may be where an answer is given by them.
const maxApart = 50 * time.Millisecond

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

func sinceBegan() int64 { return time.Since(began).Microseconds() }

// ended is a context for questions that must not wait for the network.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// masterOf returns the address of the master that has a key of Redis: empty for the only one, or while
// a Cluster's are not known.
func (c *clocks) masterOf(key string) string {
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		if master, err := cluster.MasterForKey(ended, key); err == nil {
			return master.Options().Addr
		}
	}
	return ""
}

// of returns the clock of a master.
func (c *clocks) of(address string) *clock {
	found, known := c.all.Load(address)
	if !known {
		found, _ = c.all.LoadOrStore(address, new(clock))
	}
	return found.(*clock)
}

// heard notes what the clock was, in whole milliseconds, at some time between a call and its answer.
func (c *clock) heard(now, sent, received int64) {
	c.least.Store(now*1000 - received)
	c.most.Store(now*1000 + 999 - sent)
}

// latest returns the latest that the clock can be at a time since began, unless that is not known.
func (c *clock) latest(since int64) (now int64, ok bool) {
	most := c.most.Load()
	return (since + most) / 1000, most != 0
}

// between returns the earliest and the latest that the clock can be at a time since began, unless
// that is not known well.
func (c *clock) between(since int64) (earliest, latest int64, ok bool) {
	least, most := c.least.Load(), c.most.Load()
	return (since + least) / 1000, (since + most) / 1000, most != 0 && most-least <= maxApart.Microseconds()
}
