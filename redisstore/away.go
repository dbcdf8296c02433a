package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/prober"
)

// ErrAway is the kind of error of a call whose server is away: it refuses connections, says that
// it takes no writes, or was silent for about a second while this process ran on time. A call that
// failed for itself, such as by a timeout, is not ErrAway. Where the server was not asked because
// of it, the error is Undone as well.
var ErrAway = errors.New("redis is away")

// ErrNotAsked is the kind of error of a call that was not made, as its request has waited for the
// server before, in vain; see Patience.
var ErrNotAsked = errors.New("redis did not answer this request before, and was not asked again")

// away is the error of a call to a server that is away.
type away struct{ error }

func (a away) Unwrap() error        { return a.error }
func (a away) Is(target error) bool { return target == ErrAway }

// probers are the probers of the masters that have failed a call and not answered a probe since, by
// address.
type probers struct {
	lateness *prober.Lateness
	work     context.Context // ends with the store
	end      context.CancelFunc
	running  sync.WaitGroup

	of     sync.Map // *prober.Prober by address
	mu     sync.Mutex
	closed bool
}

func newProbers(timeout time.Duration) *probers {
	began := time.Now()
	since := func() time.Duration { return time.Since(began) }
	// A probe waits for a chain of some four timers and wake-ups: while each of them is late by
	// less than a quarter of its time, it is not this process that was silent.
	p := &probers{lateness: prober.NewLateness(since, probeTime(timeout)/4)}
	p.work, p.end = context.WithCancel(context.Background())
	p.running.Go(func() { p.lateness.Run(p.work) })
	return p
}

// known is the prober of an address, nil where there is nothing against it.
func (p *probers) known(address string) *prober.Prober {
	if found, ok := p.of.Load(address); ok {
		return found.(*prober.Prober)
	}
	return nil
}

// at is the prober of an address. Open makes the client that it asks with.
func (p *probers) at(address string, open func() redis.UniversalClient, probe func(context.Context, redis.UniversalClient) prober.Outcome) *prober.Prober {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.known(address); found != nil {
		return found
	}
	client := open()
	made := prober.New(p.lateness, func(ctx context.Context) prober.Outcome { return probe(ctx, client) })
	if p.closed {
		_ = client.Close()
		return made
	}
	p.of.Store(address, made)
	p.running.Go(func() {
		stop := context.AfterFunc(p.work, func() { _ = client.Close() }) // ends a probe that is under way
		made.Run(p.work)
		p.of.CompareAndDelete(address, made)
		if stop() {
			_ = client.Close()
		}
	})
	return made
}

func (p *probers) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	p.running.Wait()
}

// Away is how many masters are known to be away.
func (s *Store) Away() (n int) {
	s.probers.of.Range(func(_, p any) bool {
		if p.(*prober.Prober).State() == prober.Away {
			n++
		}
		return true
	})
	return n
}

// Lateness is the worst lateness of this process in the last 30 to 60 seconds, by the timers
// that the verdict on Redis goes by.
func (s *Store) Lateness() time.Duration { return s.probers.lateness.Worst() }

// proberOf is the prober of a master.
func (s *Store) proberOf(address string) *prober.Prober {
	if found := s.probers.known(address); found != nil {
		return found
	}
	open := func() redis.UniversalClient { return s.redis.apart(s.keyAt(address)) }
	return s.probers.at(address, open, func(ctx context.Context, client redis.UniversalClient) prober.Outcome {
		return s.probe(ctx, client, address)
	})
}

// apart makes a client of its own, with one connection, for the master of a key.
func (c *redisClient) apart(key string) redis.UniversalClient {
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		if master, err := cluster.MasterForKey(ended, key); err == nil {
			o := *master.Options()
			o.PoolSize, o.MinIdleConns, o.MaxRetries = 1, 0, -1
			o.DialTimeout, o.ReadTimeout, o.WriteTimeout = probeTime(c.timeout), probeTime(c.timeout), probeTime(c.timeout)
			return redis.NewClient(&o)
		}
	}
	return c.servers.open(probeTime(c.timeout), 1)
}

// probeTime is how long a probe waits for its answer: as long as a call, but not so short that
// this process is often late by as much.
func probeTime(timeout time.Duration) time.Duration { return max(timeout, DefaultTimeout) }

// probe has a master take a write.
func (s *Store) probe(ctx context.Context, client redis.UniversalClient, address string) prober.Outcome {
	ctx, cancel := context.WithTimeout(ctx, probeTime(s.timeout))
	defer cancel()
	key := s.keyAt(address)
	err := client.Set(ctx, key, 1, time.Second).Err()
	if broken(err) { // perhaps the connection alone
		err = client.Set(ctx, key, 1, time.Second).Err()
	}
	outcome := outcomeOf(err)
	if outcome != prober.Answered {
		s.redis.lookAround() // another may have taken its place, and calls fail without asking
	}
	return outcome
}

// exhausted are the errors of a process, or a machine, that cannot make a connection itself.
var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL, redis.ErrPoolTimeout}

func outcomeOf(err error) prober.Outcome {
	switch {
	case err == nil || elsewhere(err) && !redis.IsReadOnlyError(err): // a master no more
		return prober.Answered
	case proves(err):
		return prober.Refused
	case slices.ContainsFunc(exhausted, func(e error) bool { return errors.Is(err, e) }):
		return prober.Inconclusive
	}
	return prober.Silent
}

// proves reports whether the error of a probe proves that the server is away, and that of a call
// is worth a probe at once. Sentinels that refuse say nothing of the master.
func proves(err error) bool {
	if err != nil && strings.Contains(err.Error(), "all sentinels specified in configuration are unreachable") {
		return false
	}
	return broken(err) || errors.Is(err, syscall.ECONNREFUSED) || refusalIn(err)
}

// pass is nil where the key's server is to be asked: it is not away, and the request has not
// waited for it in vain; and the store is open.
func (s *Store) pass(asker context.Context, key string) error {
	if s.closed.Load() {
		return refusal{errClosed}
	}
	address := s.redis.addressOf(key)
	p := s.probers.known(address)
	switch {
	case p == nil:
		return nil
	case p.Ask() == prober.Away:
		return away{refusal{ErrAway}}
	case s.asks(asker, address, p):
		return nil
	case p.State() == prober.Away: // meanwhile
		return away{refusal{ErrAway}}
	}
	return refusal{ErrNotAsked}
}

// judge notes how a call came out, and returns its error as the caller learns it: ErrAway where
// the server is known to be away. An answer of any kind speaks for the server, unless it is that
// it takes no writes. A call that its caller gave up says nothing.
func (s *Store) judge(caller context.Context, key string, err error) error {
	s.note(caller, key, err)
	address := s.redis.addressOf(key)
	switch {
	case err == nil || isReply(err) && !refusalIn(err) || errors.Is(err, errUnconfirmed):
		if p := s.probers.known(address); p != nil {
			p.Heard()
		}
	case s.provenAway(caller, address, err):
		return away{s.told(caller, err)}
	case lost(err) && waited(err) && !gaveUp(caller):
		if p := patienceOf(caller); p != nil {
			p.spend(wait{address, time.Now(), s.proberOf(address).Suspect()})
		}
	}
	return s.told(caller, err)
}

// provenAway reports whether the server of a call that failed is known to be away, and has it
// probed. Where the error is of a kind that proves it, the next probe is waited for.
func (s *Store) provenAway(caller context.Context, address string, err error) bool {
	if gaveUp(caller) || !lost(err) && !proves(err) {
		return false
	}
	s.redis.lookAround()
	p := s.proberOf(address)
	if p.Ask() == prober.Away {
		return true
	}
	known := p.Suspect()
	if !proves(err) {
		return false
	}
	enough := time.NewTimer(s.timeout)
	defer enough.Stop()
	select {
	case <-known:
	case <-caller.Done():
	case <-enough.C:
	}
	return p.State() == prober.Away
}

// lost reports whether an answer did not come: the time was up, or there was no connection.
func lost(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) || broken(err) || waited(err)
}

// waited reports whether the time was up for an answer, or for a connection to ask on.
func waited(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout() ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout)
}
