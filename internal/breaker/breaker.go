// Package breaker is a circuit breaker: calls to a server that keeps failing fail at once for a
// while.
//
//	pass := circuit.Ask()
//	if !pass.OK {
//		return // ask again in pass.Wait milliseconds
//	}
//	err := ask()
//	circuit.Settle(pass, judge(err))
package breaker

import (
	"sync"
	"time"
)

// Rule says when a Circuit opens, and for how long. Every field is required.
type Rule struct {
	Failures    int           // in a row, after which it opens
	Cooldown    time.Duration // the first; each failed trial doubles it
	MaxCooldown time.Duration // the longest; no trial makes a cooldown shorter
}

// Pass says whether a call may be made.
type Pass struct {
	OK    bool
	Trial bool  // the outcome decides whether the circuit closes
	Wait  int64 // milliseconds until asking again may help; 0 if OK
}

// Outcome is what a call told about the server.
type Outcome int

const (
	Answered  Outcome = iota + 1 // it works
	Failed                       // it does not
	NotJudged                    // nothing was learnt, as when the caller gave up
)

// AfterTrial is when to ask again while a trial is in progress, in milliseconds.
const AfterTrial = 1000

// Circuit lets every call pass until the Rule's number of failures in a row opens it. Open, it
// lets none pass until the cooldown is over, and then one trial. It may be used from any
// number of goroutines.
type Circuit struct {
	rule Rule
	now  func() int64

	mu       sync.Mutex
	failures int   // in a row, while closed
	reopens  int64 // when a trial may be made; 0 while closed
	cooldown int64 // the present one, in milliseconds
	trying   bool  // a trial is in progress
}

// NewCircuit returns a closed Circuit. Now is its clock, in milliseconds.
func NewCircuit(r Rule, now func() int64) *Circuit { return &Circuit{rule: r, now: now} }

// Ask decides whether a call may be made now. Every pass that is OK must be settled.
func (c *Circuit) Ask() Pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pass()
	c.trying = c.trying || p.Trial
	return p
}

// Wait returns how many milliseconds no call passes; while a trial is in progress, which may
// end earlier, it is when to ask again.
func (c *Circuit) Wait() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pass().Wait
}

func (c *Circuit) pass() Pass {
	if c.reopens == 0 {
		return Pass{OK: true}
	}
	now := c.now()
	c.reopens = min(c.reopens, now+c.cooldown) // a clock that steps back prolongs no cooldown
	switch {
	case now < c.reopens:
		return Pass{Wait: c.reopens - now}
	case c.trying:
		return Pass{Wait: AfterTrial}
	}
	return Pass{OK: true, Trial: true}
}

// Open reports whether it has opened, and no trial has closed it since.
func (c *Circuit) Open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reopens != 0
}

// Close closes the circuit, as a server does that answers without a call, and reports whether it was open. A trial in
// progress may open it again.
func (c *Circuit) Close() (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	closed = c.reopens != 0
	c.failures, c.reopens = 0, 0
	return closed
}

// Settle records the outcome of a pass that was OK, and reports whether that opened or closed the circuit. While it is
// open only the trial counts: calls from before are ignored.
func (c *Circuit) Settle(p Pass, o Outcome) (turned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.reopens != 0
	switch {
	case p.Trial:
		c.settleTrial(o)
	case before, o == NotJudged:
	case o == Answered:
		c.failures = 0
	default:
		if c.failures++; c.failures >= c.rule.Failures {
			c.open(max(1, c.rule.Cooldown.Milliseconds()))
		}
	}
	return before != (c.reopens != 0)
}

func (c *Circuit) settleTrial(o Outcome) {
	c.trying = false
	switch o {
	case Answered:
		c.failures, c.reopens = 0, 0
	case Failed:
		c.open(max(c.cooldown, min(2*c.cooldown, c.rule.MaxCooldown.Milliseconds())))
	}
}

func (c *Circuit) open(cooldown int64) {
	c.cooldown, c.reopens = cooldown, c.now()+cooldown
}
