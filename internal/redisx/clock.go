package redisx

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

// Clocks are those of the masters of a client, each by the last answer that told it.
type Clocks struct {
	client  redis.UniversalClient
	timeout time.Duration // that a call waits for a reply
	all     sync.Map      // *clock by the address of the master
}

// clock is how many microseconds the clock of a master is ahead of the time since began, at least and at most, unless it
// is set. 0 is not known.
type clock struct{ least, most atomic.Int64 }

// NewClocks returns the clocks of a client's masters.
func NewClocks(client redis.UniversalClient) *Clocks {
	c := &Clocks{client: client}
	switch client := client.(type) {
	case *redis.Client:
		c.timeout = client.Options().ReadTimeout
	case *redis.ClusterClient:
		c.timeout = client.Options().ReadTimeout
	}
	return c
}

// of returns the clock of a key's master. In a Cluster, that may be known only after a call.
func (c *Clocks) of(key string) *clock {
	address := "" // of the only master, or while a Cluster's are not known
	if master := MasterOf(c.client, key); master != nil {
		address = master.Options().Addr
	}
	found, known := c.all.Load(address)
	if !known {
		found, _ = c.all.LoadOrStore(address, new(clock))
	}
	return found.(*clock)
}

// Heard notes what the clock of a key's master said, in milliseconds, in the answer to a call that was sent at that time.
func (c *Clocks) Heard(key string, now int64, sent time.Time) {
	own := c.of(key)
	own.least.Store(now*1000 - time.Since(began).Microseconds())
	own.most.Store(now*1000 + 999 - sent.Sub(began).Microseconds())
}

// Now returns a millisecond that the clock of a key's master has reached just now or shortly before, 0 if it was not heard.
func (c *Clocks) Now(key string) int64 {
	ahead := c.of(key).least.Load()
	if ahead == 0 {
		return 0
	}
	return (time.Since(began).Microseconds() + ahead) / 1000
}

// NotAfter returns the time of a key's master after which no caller waits for the answer to a command of the [Call], empty
// if that is not known.
func (c *Clocks) NotAfter(ctx context.Context, key string) string {
	ahead := c.of(key).most.Load()
	end, bounded := ctx.Deadline()
	if own := called(ctx).Add(c.timeout); c.timeout > 0 && (!bounded || own.Before(end)) {
		end, bounded = own, true
	}
	if ahead == 0 || !bounded {
		return ""
	}
	return strconv.FormatInt((end.Sub(began).Microseconds()+ahead)/1000, 10)
}
