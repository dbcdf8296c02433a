// Package prober decides whether a Redis master is away.
//
// After a failed call a master is probed, on a connection and a goroutine of its own, until it
// takes a write again. A refusal proves at once that it is away. Silence proves it only when
// several probes in a row got no reply, no other reply came from the master meanwhile, and this
// process ran on time. Calls to a master that is away fail at once, with redisx.ErrAway, and so do
// those after three that failed in a row, until the next probe is answered.
package prober

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

const (
	// minTimeout is the shortest time that a probe waits for its reply.
	minTimeout = 250 * time.Millisecond
	// suspectedPause and awayPause lie between the beginnings of two probes, at least.
	suspectedPause = 100 * time.Millisecond
	awayPause      = 250 * time.Millisecond
)

// Prober knows the masters of a client. All methods are safe for concurrent use.
type Prober struct {
	client   redis.UniversalClient
	prefix   string // of the keys that probes write
	timeout  time.Duration
	lateness *lateness

	work   context.Context // ends with Close
	stop   context.CancelFunc
	probes sync.WaitGroup

	mu      sync.Mutex
	masters map[string]*Master // by address
}

// New makes a prober for the masters of a client of redisx, whose calls it sees from then on. A probe
// waits for its reply for timeout, and for 250 ms if that is shorter. Its keys begin with the prefix.
func New(client redis.UniversalClient, prefix string, timeout time.Duration) *Prober {
	p := &Prober{client: client, prefix: prefix, timeout: max(timeout, minTimeout), masters: map[string]*Master{}}
	// A probe waits for about four timers and wake-ups in a row. While each is late by less than a quarter of the
	// timeout, a silent probe is not the fault of this process.
	p.lateness = newLateness(time.Now(), p.timeout/4)
	p.work, p.stop = context.WithCancel(context.Background())
	p.probes.Go(func() { p.lateness.run(p.work) })
	client.AddHook(redisx.Around(p.at("").call))
	switch client := client.(type) {
	case *redis.Client:
		p.at("").options = client.Options()
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) {
			m := p.at(node.Options().Addr)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.options = node.Options()
			node.AddHook(redisx.Around(m.call))
		})
	}
	return p
}

// Close ends all probes.
func (p *Prober) Close() {
	p.stop()
	p.probes.Wait()
}

// Late returns how often this process was so late that silence proved nothing.
func (p *Prober) Late() uint64 { return p.lateness.count() }

// MasterOf returns the master of a key's records, which have {key} as their hash tag.
func (p *Prober) MasterOf(key string) *Master { return p.at(redisx.AddressOf(p.client, "{"+key+"}")) }

func (p *Prober) at(address string) *Master {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.masters[address]
	if m == nil {
		m = &Master{Address: address, prober: p, probed: make(chan struct{})}
		m.probe = m.tryProbe
		p.masters[address] = m
	}
	return m
}

// Masters returns those that calls went to so far.
func (p *Prober) Masters() (all []*Master) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.masters {
		all = append(all, m)
	}
	return all
}

// Master is one Redis master, or all of a Cluster while their addresses are not known.
type Master struct {
	Address string // empty where there is only one
	prober  *Prober
	probe   func(context.Context, redis.UniversalClient) error

	mu       sync.Mutex
	evidence evidence
	options  *redis.Options // nil while they are not known
	cause    error          // of the last call that failed, or the last refusal
	probing  bool           // a goroutine does
	probed   chan struct{}  // closed at the end of the next probe
}

// State returns what is known of the master.
func (m *Master) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.evidence.state
}

// Cause returns the error of the last call that failed, or the last refusal of a probe.
func (m *Master) Cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

// Failed has the master probed because a call failed, and reports whether it is away. It waits
// for a probe if the error says that the master refuses, or that it was not asked. The end of the
// caller is no evidence, nor is an error of one key or one reply.
func (m *Master) Failed(ctx context.Context, cause error) (away bool) {
	if ctx.Err() != nil {
		return false
	}
	_, network := errors.AsType[net.Error](cause) // also a context's deadline
	decisive := outcomeOf(cause) == refused || errors.Is(cause, redisx.ErrAway)
	if !decisive && !network && !errors.Is(cause, redisx.ErrSilent) {
		return m.State() == Away
	}
	probed, state := m.suspect(0, cause)
	if state == Suspected && decisive {
		enough, cancel := context.WithTimeout(ctx, m.prober.timeout)
		defer cancel()
		select {
		case <-probed:
		case <-enough.Done():
		}
	}
	return m.State() == Away
}

// call makes a call unless it would not be answered, and notes what it says of the master. A master that says that it
// takes no writes answers at once, and may be read.
func (m *Master) call(ctx context.Context, next func(context.Context) error) error {
	if m.Address == "" && redisx.AddressOf(m.prober.client, "any") != "" { // the masters of a Cluster have hooks, too
		return next(ctx)
	}
	m.mu.Lock()
	vain, cause := m.evidence.state == Away || m.evidence.failed >= failedCalls, m.cause
	m.mu.Unlock()
	if vain && !redisx.IsReply(cause) {
		return fmt.Errorf("%w: %v", redisx.ErrAway, cause)
	}
	err := next(ctx)
	if err == nil || redisx.IsReply(err) {
		m.mu.Lock()
		m.evidence.heard()
		m.mu.Unlock()
	} else if redisx.Unanswered(ctx, err) {
		m.suspect(1, cmp.Or(context.Cause(ctx), err))
	}
	return err
}

func (m *Master) suspect(calls int, cause error) (probed <-chan struct{}, s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !errors.Is(cause, redisx.ErrAway) {
		m.cause = cause
	}
	m.evidence.suspect(calls)
	if !m.probing && m.prober.work.Err() == nil {
		m.probing = true
		m.prober.probes.Go(m.probeUntilHere)
	}
	return m.probed, m.evidence.state
}

// probeUntilHere probes until the master answers or the prober is closed.
func (m *Master) probeUntilHere() {
	work := m.prober.work
	for again := true; again; {
		began := time.Now()
		err := m.probeOnce(work)
		var pause time.Duration
		pause, again = m.note(err, began, time.Now())
		timer := time.NewTimer(time.Until(began.Add(pause)))
		select {
		case <-timer.C:
		case <-work.Done():
			timer.Stop()
		}
	}
}

// probeOnce makes one probe; a panic in it is a probe that was not answered. It has a client of its own, as one that
// could not connect tries only once a second.
func (m *Master) probeOnce(work context.Context) (err error) {
	client := m.newClient()
	defer client.Close()
	closing := context.AfterFunc(work, func() { _ = client.Close() }) // ends the probe
	defer closing()
	defer recovered.Into(&err)
	return m.probe(work, client)
}

// note notes the result of a probe, and returns how much later than this one the next begins, if there is to be one.
func (m *Master) note(err error, began, ended time.Time) (pause time.Duration, again bool) {
	late := m.prober.lateness.lateSince(ended.Add(-max(lateFor, ended.Sub(began))), ended)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prober.work.Err() != nil {
		m.probing = false
		return 0, false
	}
	o := outcomeOf(err)
	if _, panicked := errors.AsType[recovered.Error](err); o == refused || panicked {
		m.cause = err
	}
	m.evidence.probed(o, began, ended, late)
	close(m.probed)
	m.probed = make(chan struct{})
	switch m.evidence.state {
	case Suspected:
		return suspectedPause, true
	case Away:
		return awayPause, true
	}
	m.probing = false
	return 0, false
}
