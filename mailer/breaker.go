package mailer

import (
	"cmp"
	"sync"
	"time"
)

// Breaker says when a failing relay is left alone. After Failures failures in
// a row nobody asks it for Cooldown; then one mail is tried on it, while the
// others go on as before. If that one fails, the rest is twice as long, up to
// MaxCooldown; if it is answered, the relay is back.
//
// A failure is a relay that does not do its work: unreachable, silent, broken
// off, or saying 4xx to everybody. A refused recipient is none, nor is a 4xx
// to one recipient or one mail, nor whatever becomes of RCPT once MAIL was
// answered, be it silence, nor a mail that came to the relay so late that its
// own time ended first: otherwise whoever may name a recipient could stop the
// mail of all.
type Breaker struct {
	Failures    int           // 5 if zero
	Cooldown    time.Duration // 5 s if zero
	MaxCooldown time.Duration // 2 min if zero, but at least Cooldown
}

func (b Breaker) withDefaults() Breaker {
	b.Failures = cmp.Or(b.Failures, 5)
	b.Cooldown = cmp.Or(b.Cooldown, 5*time.Second)
	b.MaxCooldown = max(cmp.Or(b.MaxCooldown, 2*time.Minute), b.Cooldown)
	return b
}

// circuitState is all that a breaker remembers. The zero value is closed.
type circuitState struct {
	failures int   // in a row, while closed
	reopens  int64 // when a trial may be made; 0 while closed
	rest     int64 // the present cooldown, in milliseconds
	trying   bool  // a trial is under way
}

// pass is what ask answers.
type pass struct {
	ok    bool
	trial bool  // the outcome decides whether the relay is back
	wait  int64 // milliseconds until asking again may help; 0 if ok
}

// verdict is what a try tells about the relay.
type verdict int

const (
	relayAnswered verdict = iota + 1
	relayFailed
	relayReached   // it took MAIL, and what kept it then may be the recipient's doing
	relayNotJudged // nothing was learnt: the sender gave up, say
)

// afterTrial is how soon to come again while a trial is under way.
const afterTrial = 1000

// ask says whether a mail may be tried now.
func (b Breaker) ask(s circuitState, now int64) (circuitState, pass) {
	if s.reopens == 0 {
		return s, pass{ok: true}
	}
	// A clock that steps back prolongs no rest beyond its length.
	s.reopens = min(s.reopens, now+s.rest)
	switch {
	case now < s.reopens:
		return s, pass{wait: s.reopens - now}
	case s.trying:
		return s, pass{wait: afterTrial}
	}
	s.trying = true
	return s, pass{ok: true, trial: true}
}

// settle takes in how a try that ask allowed came out. While the breaker is
// open only the trial counts: stragglers from before are ignored.
func (b Breaker) settle(s circuitState, now int64, p pass, v verdict) circuitState {
	if p.trial {
		switch v {
		case relayAnswered, relayReached:
			return circuitState{}
		case relayFailed:
			s.rest = min(2*s.rest, b.MaxCooldown.Milliseconds())
			s.reopens = now + s.rest
		}
		s.trying = false
		return s
	}
	if s.reopens != 0 || v == relayReached || v == relayNotJudged {
		return s
	}
	if v == relayAnswered {
		return circuitState{}
	}
	s.failures++
	if s.failures >= b.Failures {
		s.rest = max(1, b.Cooldown.Milliseconds())
		s.reopens = now + s.rest
	}
	return s
}

// circuit is a Breaker at work on one relay.
type circuit struct {
	rule    Breaker
	now     func() int64
	changed func(open bool)

	mu    sync.Mutex
	state circuitState
}

// ask takes a pass; every pass that is ok must be settled.
func (c *circuit) ask() pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p pass
	c.state, p = c.rule.ask(c.state, c.now())
	return p
}

// rest is how long the relay is certain not to be asked, in milliseconds.
func (c *circuit) rest() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, p := c.rule.ask(c.state, c.now())
	return p.wait
}

func (c *circuit) settle(p pass, v verdict) {
	c.mu.Lock()
	before := c.state.reopens != 0
	c.state = c.rule.settle(c.state, c.now(), p, v)
	after := c.state.reopens != 0
	c.mu.Unlock()
	if before != after {
		c.changed(after)
	}
}
