package redisstore

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/breaker"
)

// Resting is how many servers are left alone at this moment because they do not answer;
// what lies on them fails with ErrResting.
func (s *Store) Resting() int { return s.circuits.count() }

// pass is nil, or ErrResting where the key's server rests, or whoever asks has waited for it
// in vain. It makes the trials that are due.
func (s *Store) pass(asker context.Context, key string) error {
	left := patienceOf(asker)
	if s.circuits.calm() && left.whole() {
		return nil
	}
	for _, address := range s.circuits.due() {
		s.trials.begin(func(ctx context.Context) { s.try(ctx, address) })
	}
	address := s.redis.addressOf(key)
	if s.circuits.open(address) || left.spentOn(address) {
		return ErrResting
	}
	return nil
}

// judge takes in how a call came out. What Redis answered, whatever it was, speaks for the
// server, and what ended with the caller's own patience says nothing of it.
func (s *Store) judge(caller context.Context, key string, err error) {
	s.note(caller, key, err)
	switch {
	case err == nil || isReply(err) || errors.Is(err, errUnconfirmed):
		if !s.circuits.calm() {
			s.circuits.answered(s.redis.addressOf(key))
		}
	case lost(err) && caller.Err() == nil:
		address := s.redis.addressOf(key)
		s.redis.lookAround()
		patienceOf(caller).spend(address)
		if s.circuits.failed(address) {
			// At once a second opinion: in a Cluster a call can have waited for what was
			// sent along with it to another server.
			s.trials.begin(func(ctx context.Context) { s.try(ctx, address) })
		}
	}
}

// lost reports whether an answer did not come: the time was up, or there was no connection.
func lost(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) || broken(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout)
}

// try asks a server whether it is there, on a connection of its own.
func (s *Store) try(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	server, err := s.redis.masterNamed(ctx, address)
	switch {
	case err != nil:
		s.circuits.tried(address, breaker.Failed)
	case server == nil: // another has taken its place, and is asked in its stead
		s.circuits.tried(address, breaker.Answered)
	default:
		s.circuits.tried(address, ping(ctx, server))
	}
}

func ping(ctx context.Context, server *redis.Client) breaker.Outcome {
	o := *server.Options()
	o.PoolSize, o.MinIdleConns, o.MaxRetries = 1, 0, -1
	fresh := redis.NewClient(&o)
	defer fresh.Close()
	if err := fresh.Ping(ctx).Err(); err != nil && !isReply(err) {
		return breaker.Failed
	}
	return breaker.Answered
}

// everybody stands for a Cluster of which nobody knows yet which masters it has.
const everybody = ""

// addressOf is the address of the key's server as circuits know it, without asking
// anybody.
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
