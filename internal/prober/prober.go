// Package prober decides whether a Redis master is away.
//
// After a failed call a master is probed, on a connection and a goroutine of its own, until it
// takes a write again. A refusal proves at once that it is away. Silence proves it only when
// several probes in a row got no reply, no other reply came from the master meanwhile, and this
// process ran on time.
package prober

import (
	"context"
	"errors"
	"sync"
	"time"

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

// New makes a prober for the masters of a client. A probe waits for its reply for timeout, and
// for 250 ms if that is shorter. Its keys begin with the prefix.
func New(client redis.UniversalClient, prefix string, timeout time.Duration) *Prober {
	p := &Prober{client: client, prefix: prefix, timeout: max(timeout, minTimeout), masters: map[string]*Master{}}
	// A probe waits for a chain of some four timers and wake-ups: while each is late by less
	// than a quarter of the timeout, it is not this process that was silent.
	p.lateness = newLateness(time.Now(), p.timeout/4)
	p.work, p.stop = context.WithCancel(context.Background())
	p.probes.Go(func() { p.lateness.run(p.work) })
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
func (p *Prober) MasterOf(key string) *Master { return p.at(p.addressOf("{" + key + "}")) }

func (p *Prober) at(address string) *Master {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.masters[address]
	if m == nil {
		m = &Master{Address: address, prober: p, probed: make(chan struct{})}
		m.probe = m.tryWrite
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
	probe   func(context.Context, redis.UniversalClient) outcome

	mu       sync.Mutex
	evidence evidence
	cause    error         // of the last call that failed
	probing  bool          // a goroutine does
	probed   chan struct{} // closed at the end of the next probe
}

// State returns what is known of the master.
func (m *Master) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.evidence.state
}

// Cause returns the error of the last call that failed.
func (m *Master) Cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

// Heard notes that the master has answered a call.
func (m *Master) Heard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evidence.heard()
}

// Failed has the master probed because a call failed, and reports whether it is away. It waits
// for a probe if the error says that the master refuses, or nothing of it, as where other calls have
// opened the circuit breaker. The end of the caller is no evidence.
func (m *Master) Failed(ctx context.Context, cause error) (away bool) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	probed, state := m.suspect(cause)
	if state == Suspected && (outcomeOf(cause) == refused || errors.Is(cause, redisx.ErrCircuitOpen)) {
		enough := time.NewTimer(m.prober.timeout)
		defer enough.Stop()
		select {
		case <-probed:
		case <-enough.C:
		case <-ctx.Done():
		}
	}
	return m.State() == Away
}

func (m *Master) suspect(cause error) (probed <-chan struct{}, s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cause = cause
	m.evidence.suspect()
	if !m.probing && m.prober.work.Err() == nil {
		m.probing = true
		m.prober.probes.Go(m.probeUntilHere)
	}
	return m.probed, m.evidence.state
}

// probeUntilHere probes until the master answers or the prober is closed.
func (m *Master) probeUntilHere() {
	client := m.prober.clientFor(m.Address)
	closing := context.AfterFunc(m.prober.work, func() { _ = client.Close() }) // ends a probe in progress
	for m.suspected() {
		m.probeOnce(client)
	}
	if closing() {
		_ = client.Close()
	}
}

// suspected reports whether there is to be another probe.
func (m *Master) suspected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probing = m.evidence.state != Here && m.prober.work.Err() == nil
	return m.probing
}

// probeOnce makes one probe, and then pauses while the master does not answer.
func (m *Master) probeOnce(client redis.UniversalClient) {
	p := m.prober
	began := time.Now()
	o := m.probe(p.work, client)
	if p.work.Err() != nil {
		return
	}
	pause := m.note(o, began, time.Now())
	timer := time.NewTimer(time.Until(began.Add(pause)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.work.Done():
	}
}

func (m *Master) note(o outcome, began, ended time.Time) (pause time.Duration) {
	late := m.prober.lateness.lateSince(ended.Add(-max(lateFor, ended.Sub(began))), ended)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evidence.probed(o, began, ended, late)
	close(m.probed)
	m.probed = make(chan struct{})
	switch m.evidence.state {
	case Suspected:
		return suspectedPause
	case Away:
		return awayPause
	}
	return 0
}
