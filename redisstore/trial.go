package redisstore

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/breaker"
)

// Resting is how many servers are left alone at this moment because they do not answer;
// what lies on them fails with ErrResting.
func (s *Store) Resting() int { return s.circuits.count() }

// pass is nil, or ErrResting where the key's server rests, or whoever asks has waited for it
// in vain; or the store is closed. It makes the trials that are due.
func (s *Store) pass(asker context.Context, key string) error {
	if s.closed.Load() {
		return refusal{errClosed}
	}
	left := patienceOf(asker)
	if s.circuits.calm() && left.whole() {
		return nil
	}
	for _, address := range s.circuits.due() {
		s.trials.begin(func(ctx context.Context) { s.try(ctx, address) })
	}
	address := s.redis.addressOf(key)
	if s.circuits.open(address) || !s.asks(asker, left, address) {
		return ErrResting
	}
	return nil
}

// judge notes how a call came out. Any answer of Redis speaks for the server. A call that its
// caller gave up says nothing.
func (s *Store) judge(caller context.Context, key string, err error) {
	s.note(caller, key, err)
	switch {
	case err == nil || isReply(err) || errors.Is(err, errUnconfirmed):
		if !s.circuits.calm() {
			s.circuits.answered(s.redis.addressOf(key))
		}
	case lost(err) && !gaveUp(caller):
		address := s.redis.addressOf(key)
		s.redis.lookAround()
		opened := s.circuits.failed(address)
		// At once a second opinion: in a Cluster a call can have waited for what was sent
		// along with it to another server.
		if opened {
			s.trials.begin(func(ctx context.Context) { s.try(ctx, address) })
		}
		if p := patienceOf(caller); p != nil && waited(err) {
			p.spend(wait{address, time.Now(), s.secondOpinion(address)})
		}
	}
}

// secondOpinion asks a server that has failed whether it is there, and ends when that is
// known. If it is, its failures are forgotten; only a trial ends its rest.
func (s *Store) secondOpinion(address string) (known <-chan struct{}) {
	return s.trials.once(address, func(ctx context.Context) {
		if s.isThere(ctx, address) == breaker.Answered {
			s.circuits.answered(address)
		}
	})
}

// lost reports whether an answer did not come: the time was up, or there was no connection.
func lost(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) || broken(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout)
}

// waited reports whether the time was up for an answer, or for a connection to ask on.
func waited(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout() ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout)
}

// try makes a trial of a server that rests.
func (s *Store) try(ctx context.Context, address string) {
	s.circuits.tried(address, s.isThere(ctx, address))
}

// isThere asks a server whether it is there, on a connection of its own.
func (s *Store) isThere(ctx context.Context, address string) breaker.Outcome {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	server, err := s.redis.masterNamed(ctx, address)
	switch {
	case err != nil:
		return breaker.Failed
	case server == nil: // another has taken its place, and is asked in its stead
		return breaker.Answered
	}
	return ping(ctx, server)
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

	mu       sync.Mutex
	closed   bool
	running  sync.WaitGroup
	underWay map[string]chan struct{} // of which there is one at a time, by name
}

func newTrials() *trials {
	life, end := context.WithCancel(context.Background())
	return &trials{life: life, end: end, underWay: map[string]chan struct{}{}}
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

// once begins, unless one of the name is under way, and returns what ends with it.
func (t *trials) once(name string, try func(ctx context.Context)) (ended <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, found := t.underWay[name]; found {
		return other
	}
	mine := make(chan struct{})
	if t.closed {
		close(mine)
		return mine
	}
	t.underWay[name] = mine
	t.running.Go(func() {
		defer close(mine)
		try(t.life)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.underWay, name)
	})
	return mine
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
