// Package prober decides whether a server is away.
//
// A [Prober] asks the server by itself, on a connection and a goroutine of its own, from when a
// call has failed until the server answers again. A refusal proves at once that the server is
// away. Silence proves it only when several probes in a row were not answered, nothing else was
// heard from the server meanwhile, and this process ran on time, as [Lateness] measures.
package prober

import (
	"context"
	"sync"
	"time"
)

// State is what is known of a server.
type State int

const (
	Here      State = iota // it answers, or no call has failed since it did
	Suspected              // a call has failed, and the probes have not decided yet
	Away                   // it refuses, or was silent for long enough
)

// Outcome is what became of a probe.
type Outcome int

const (
	Answered     Outcome = iota // the server took a write
	Refused                     // the connection was refused or reset, or the server said that it takes no writes
	Silent                      // no answer came in time, or no way to the server was found
	Inconclusive                // this process could not ask, for want of files or memory
)

const (
	// silentProbes and silentFor are how many probes in a row must be silent, and for how long.
	silentProbes = 3
	silentFor    = 700 * time.Millisecond
	// suspectedPause and awayPause lie between the beginnings of two probes, at least.
	suspectedPause = 100 * time.Millisecond
	awayPause      = 250 * time.Millisecond
	// forgottenAfter is when a server that no call has asked about is not probed any more, such
	// as a master that was replaced.
	forgottenAfter = 10 * time.Second
)

// evidence is what speaks against a server.
type evidence struct {
	state  State
	silent int           // probes in a row that were silent and on time
	since  time.Duration // when the first of them began
}

// suspect notes a call that failed.
func (e *evidence) suspect() {
	if e.state == Here {
		*e = evidence{state: Suspected}
	}
}

// heard notes that the server has answered a call. Only a probe ends an outage.
func (e *evidence) heard() { e.silent = 0 }

// probed notes a probe that began and ended. Late says that this process did not run on time
// meanwhile.
func (e *evidence) probed(o Outcome, began, ended time.Duration, late bool) {
	switch {
	case o == Answered:
		*e = evidence{}
	case e.state == Away:
	case o == Refused:
		e.state = Away
	case o == Inconclusive || late:
		e.silent = 0
	default:
		if e.silent == 0 {
			e.since = began
		}
		e.silent++
		if e.silent >= silentProbes && ended-e.since >= silentFor {
			e.state = Away
		}
	}
}

// Prober probes one server, from when a call has failed until the server answers. All methods are
// safe for concurrent use.
type Prober struct {
	probe    func(context.Context) Outcome
	lateness *Lateness

	mu       sync.Mutex
	evidence evidence
	asked    time.Duration // when a call last asked about the server
	ended    chan struct{} // closed at the end of the next probe, or for good when Run ends
	over     bool          // Run has ended
}

// New makes a prober of a server that is suspected. It asks with probe, which must end by itself.
func New(lateness *Lateness, probe func(context.Context) Outcome) *Prober {
	return &Prober{
		probe: probe, lateness: lateness, evidence: evidence{state: Suspected}, asked: lateness.now(), ended: make(chan struct{}),
	}
}

// State is what is known of the server.
func (p *Prober) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.evidence.state
}

// Ask is State for a call that would go to the server. A server that no call asks about for ten
// seconds is not probed any more.
func (p *Prober) Ask() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = p.lateness.now()
	return p.evidence.state
}

// Suspect has the server probed once more, as a call has failed. Known is closed at the end of the
// next probe. It changes nothing when Run has ended.
func (p *Prober) Suspect() (known <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = p.lateness.now()
	if !p.over {
		p.evidence.suspect()
	}
	return p.ended
}

// Heard notes that the server has answered a call.
func (p *Prober) Heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.evidence.heard()
}

// Run probes until the server answers, no call asks about it any more, or ctx ends.
func (p *Prober) Run(ctx context.Context) {
	for p.wanted() && p.once(ctx) {
	}
}

// wanted reports whether the server is to be probed. One that no call asks about is forgotten.
func (p *Prober) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lateness.now()-p.asked > forgottenAfter {
		p.evidence = evidence{}
	}
	if p.evidence.state == Here {
		p.over = true
		close(p.ended)
	}
	return !p.over
}

// once makes one probe and pauses, and reports whether there is to be another.
func (p *Prober) once(ctx context.Context) bool {
	began := p.lateness.now()
	outcome := p.probe(ctx)
	if ctx.Err() != nil {
		return false
	}
	ended := p.lateness.now()
	late := p.lateness.LateSince(min(began, ended-lateFor))
	p.mu.Lock()
	p.evidence.probed(outcome, began, ended, late)
	state := p.evidence.state
	close(p.ended)
	p.ended = make(chan struct{})
	p.mu.Unlock()
	pause := suspectedPause
	switch state {
	case Here:
		return true
	case Away:
		pause = awayPause
	}
	timer := time.NewTimer(began + pause - ended)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
