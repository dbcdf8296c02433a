// Package breaker is a circuit breaker: what keeps failing is not asked for a while, so that
// not every call pays for finding that out anew.
//
// A [Rule] is the decision, pure steps on a small [State]. Closed, every call passes. After
// so many failures in a row it opens, and no call passes until the cooldown is over. Then
// one trial passes, whose outcome closes it or doubles the cooldown. A [Circuit] is a Rule
// for any number of goroutines.
//
//	pass := circuit.Ask()
//	if !pass.OK {
//		return // come again in pass.Wait milliseconds
//	}
//	err := ask()
//	circuit.Settle(pass, judge(err))
package breaker

import "time"

// Rule says when a circuit opens, and for how long. Every field is required.
type Rule struct {
	Failures    int           // in a row, after which it opens
	Cooldown    time.Duration // the first; each failed trial doubles it
	MaxCooldown time.Duration // the longest; no trial makes a cooldown shorter
}

// State is all that a Rule remembers. The zero State is closed, without failures.
type State struct {
	failures int   // in a row, while closed
	reopens  int64 // when a trial may be made; 0 while closed
	rest     int64 // the present cooldown, in milliseconds
	trying   bool  // a trial is under way
}

// Open reports whether calls are refused until a trial is answered.
func (s State) Open() bool { return s.reopens != 0 }

// Pass says whether a call may be made.
type Pass struct {
	OK    bool
	Trial bool  // the outcome decides whether it closes
	Wait  int64 // milliseconds until asking again may help; 0 if OK
}

// Outcome is what a call told.
type Outcome int

const (
	Answered  Outcome = iota + 1 // it works
	Failed                       // it does not
	Reached                      // it is there, and what failed then may be the caller's doing
	NotJudged                    // nothing was learnt, as when the caller gave up
)

// AfterTrial is when to ask again while a trial is under way, in milliseconds.
const AfterTrial = 1000

// Ask decides whether a call may be made now.
func (r Rule) Ask(s State, now int64) (State, Pass) {
	if s.reopens == 0 {
		return s, Pass{OK: true}
	}
	// A clock that steps back prolongs no cooldown beyond its length.
	s.reopens = min(s.reopens, now+s.rest)
	switch {
	case now < s.reopens:
		return s, Pass{Wait: s.reopens - now}
	case s.trying:
		return s, Pass{Wait: AfterTrial}
	}
	s.trying = true
	return s, Pass{OK: true, Trial: true}
}

// Settle records the outcome of a pass that was OK. While open only the trial counts:
// stragglers from before are ignored.
func (r Rule) Settle(s State, now int64, p Pass, o Outcome) State {
	if p.Trial {
		return r.settleTrial(s, now, o)
	}
	if s.reopens != 0 || o == Reached || o == NotJudged {
		return s
	}
	if o == Answered {
		return State{}
	}
	s.failures++
	if s.failures >= r.Failures {
		s.rest = max(1, r.Cooldown.Milliseconds())
		s.reopens = now + s.rest
	}
	return s
}

func (r Rule) settleTrial(s State, now int64, o Outcome) State {
	switch o {
	case Answered, Reached:
		return State{}
	case Failed:
		s.rest = max(s.rest, min(2*s.rest, r.MaxCooldown.Milliseconds()))
		s.reopens = now + s.rest
	}
	s.trying = false
	return s
}
