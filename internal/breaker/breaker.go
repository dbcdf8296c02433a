// Package breaker leaves alone for a while what keeps failing, so that not everybody who
// would ask it pays for finding that out anew.
//
// A [Rule] is the decision, pure steps on a small [State]: closed it lets everybody
// through; after so many failures in a row it is open, and lets nobody through until the
// rest is over; then one trial, whose outcome closes it or prolongs the rest. A [Circuit]
// is a rule at work, for any number of goroutines.
//
//	pass := circuit.Ask()
//	if !pass.OK {
//		return // come again in pass.Wait milliseconds
//	}
//	err := ask()
//	circuit.Settle(pass, judge(err))
package breaker

import "time"

// A Rule says when to leave alone, and for how long. All of it must be given.
type Rule struct {
	Failures    int           // in a row, after which it opens
	Cooldown    time.Duration // the first rest; each failed trial doubles it
	MaxCooldown time.Duration // the longest; no trial makes a rest shorter
}

// A State is all that a rule remembers. The zero State is closed and knows of no failure.
type State struct {
	failures int   // in a row, while closed
	reopens  int64 // when a trial may be made; 0 while closed
	rest     int64 // the present cooldown, in milliseconds
	trying   bool  // a trial is under way
}

// Open reports whether asking is over until a trial is answered.
func (s State) Open() bool { return s.reopens != 0 }

// A Pass is the answer to who wants to ask.
type Pass struct {
	OK    bool
	Trial bool  // the outcome decides whether it closes
	Wait  int64 // milliseconds until asking again may help; 0 if OK
}

// An Outcome is what was learnt by asking.
type Outcome int

const (
	Answered  Outcome = iota + 1 // it does its work
	Failed                       // it does not
	Reached                      // it is there, and what kept it then may be the asker's doing
	NotJudged                    // nothing was learnt: the asker gave up, say
)

// AfterTrial is how many milliseconds later to come again while a trial is under way.
const AfterTrial = 1000

// Ask says whether one may ask now.
func (r Rule) Ask(s State, now int64) (State, Pass) {
	if s.reopens == 0 {
		return s, Pass{OK: true}
	}
	// A clock that steps back prolongs no rest beyond its length.
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

// Settle takes in what came of a pass that was OK. While open only the trial counts:
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
