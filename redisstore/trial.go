package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// everybody stands for a Cluster of which nobody knows yet which masters it has.
const everybody = ""

// addressOf is the address of the key's server as far as it is known, without asking any.
func (c *redisClient) addressOf(key string) string {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		return c.name
	}
	master, err := cluster.MasterForKey(ended, key)
	if err != nil {
		return everybody
	}
	return master.Options().Addr
}

// ended is a context in which no question is asked of a server.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// lookAround asks a Cluster anew, in the background, who its masters are.
func (c *redisClient) lookAround() {
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(context.Background())
	}
}

// trials run in the background, until the store closes.
type trials struct {
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func newTrials() *trials {
	life, end := context.WithCancel(context.Background())
	return &trials{life: life, end: end}
}

// begin reports whether there is time left to begin.
func (t *trials) begin(try func(ctx context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.running.Go(func() { try(t.life) })
	}
	return !t.closed
}

var errClosed = errors.New("the connections are closed")

// close ends those that run, and waits for them.
func (t *trials) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.running.Wait()
}
