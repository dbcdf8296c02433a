package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clocks are the clocks of a client's masters, as last read: for each address, how many milliseconds
// the master's clock was ahead of the time since began, or 0 if that is not known.
type clocks struct {
	client redis.UniversalClient
	ahead  sync.Map // address to *atomic.Int64
}

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

func sinceBegan() int64 { return time.Since(began).Milliseconds() }

// ended is a context for questions that must not wait for the network.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// of returns the clock of the master that has a key of Redis.
func (c *clocks) of(key string) *atomic.Int64 {
	address := "" // of the only master, or while a Cluster's are not known
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		if master, err := cluster.MasterForKey(ended, key); err == nil {
			address = master.Options().Addr
		}
	}
	ahead, known := c.ahead.Load(address)
	if !known {
		ahead, _ = c.ahead.LoadOrStore(address, new(atomic.Int64))
	}
	return ahead.(*atomic.Int64)
}
