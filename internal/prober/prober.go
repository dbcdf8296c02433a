// Package prober decides whether a Redis master is away.
//
// After a failed call a master is probed, on a connection and a goroutine of its own, until it
// takes a write again. A refusal proves at once that it is away. Silence proves it only when
// several probes in a row got no reply, no other reply came from the master meanwhile, and this
// process ran on time. Calls to a master that is away fail at once, with redisx.ErrAway, and so do
// those after three that failed in a row, until the next probe is answered.
package prober

import (
	"context"
	"errors"
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
	client.AddHook(hook{p.at("")})
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(hook{p.at(node.Options().Addr)}) })
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
func (p *Prober) MasterOf(key string) *Master { return p.at(p.addressOf("{" + key + "}")) }

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
	cause    error         // of the last call that failed, or the last refusal
	probing  bool          // a goroutine does
	probed   chan struct{} // closed at the end of the next probe
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
	if !unanswered(cause) {
		return m.State() == Away
	}
	probed, state := m.suspect(0, cause)
	if state == Suspected && (outcomeOf(cause) == refused || errors.Is(cause, redisx.ErrAway)) {
		enough, cancel := context.WithTimeout(ctx, m.prober.timeout)
		defer cancel()
		select {
		case <-probed:
		case <-enough.Done():
		}
	}
	return m.State() == Away
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
	for m.suspected() {
		m.probeOnce()
	}
}

// suspected reports whether there is to be another probe.
func (m *Master) suspected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probing = m.evidence.state != Here && m.prober.work.Err() == nil
	return m.probing
}

// probeOnce makes one probe, and then pauses while the master does not answer. It has a client of its
// own, as one that could not connect tries only once a second.
func (m *Master) probeOnce() {
	p, client := m.prober, m.prober.clientFor(m.Address)
	closing := context.AfterFunc(p.work, func() { _ = client.Close() }) // ends the probe
	began := time.Now()
	err := m.try(p.work, client)
	if closing() {
		_ = client.Close()
	}
	if p.work.Err() != nil {
		return
	}
	pause := m.note(err, began, time.Now())
	timer := time.NewTimer(time.Until(began.Add(pause)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.work.Done():
	}
}

// try makes a probe; a panic in it is a probe that was not answered.
func (m *Master) try(ctx context.Context, client redis.UniversalClient) (err error) {
	defer recovered.Into(&err)
	return m.probe(ctx, client)
}

func (m *Master) note(err error, began, ended time.Time) (pause time.Duration) {
	late := m.prober.lateness.lateSince(ended.Add(-max(lateFor, ended.Sub(began))), ended)
	m.mu.Lock()
	defer m.mu.Unlock()
	o := outcomeOf(err)
	if _, panicked := errors.AsType[recovered.Error](err); o == refused || panicked {
		m.cause = err
	}
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
