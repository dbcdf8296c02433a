package judge

import (
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// Judge finds every violation in a run.
func Judge(run *Run) []Violation {
	c := newChecker(run)
	c.answers()
	c.limits()
	c.waits()
	c.mails()
	c.keys()
	c.codes()
	c.finals()
	c.suppressed()
	return c.found
}

// checker is a run with indexes, and the violations found in it.
type checker struct {
	*Run
	asked   [Lift + 1]map[string][]*Call // by mailbox or subject
	mailsOf map[string][]Mail            // accepted by a relay, by mailbox
	byID    map[string][]Mail            // the same, by admission
	ofDoor  map[string]bool              // admissions of emails by SMTP
	back    map[string]*Call             // requested releases, by what they refund
	touched map[string]bool              // mailboxes and subjects that were requested during the fault
	alone   map[string][]int             // nodes that may have decided about them alone then
	found   []Violation
}

const (
	// memory is how long before a fault an answer may be that the store forgets.
	memory = 2000
	// drift is by how much the clock of a node alone may differ from the store's.
	drift = 250
)

func newChecker(run *Run) *checker {
	c := &checker{Run: run, mailsOf: map[string][]Mail{}, byID: map[string][]Mail{}, ofDoor: map[string]bool{},
		back: map[string]*Call{}, touched: map[string]bool{}, alone: map[string][]int{}}
	for i := range c.asked {
		c.asked[i] = map[string][]*Call{}
	}
	for i := range run.Calls {
		call := &run.Calls[i]
		c.asked[call.For][call.Subject] = append(c.asked[call.For][call.Subject], call)
		if call.Door {
			c.ofDoor[call.ID] = true
		}
		if call.For == Release && call.Kind != NotAsked {
			c.back[call.ID] = call
		}
		if run.faultIn(Span{call.Span.From, call.Span.To + memory}) {
			c.touched[call.Subject] = true
			if call.mayBeAlone() && !slices.Contains(c.alone[call.Subject], call.Node) {
				c.alone[call.Subject] = append(c.alone[call.Subject], call.Node)
			}
		}
	}
	for _, m := range run.Mails {
		if !m.Refused {
			c.mailsOf[m.Mailbox] = append(c.mailsOf[m.Mailbox], m)
			c.byID[m.ID] = append(c.byID[m.ID], m)
		}
	}
	return c
}

func (c *checker) report(rule, subject, format string, args ...any) {
	c.found = append(c.found, Violation{rule, fmt.Sprintf(format, args...), subject})
}

// faultIn reports whether there was a fault in a span of time.
func (r *Run) faultIn(s Span) bool { return slices.ContainsFunc(r.Faults, s.meets) }

// times returns how often a limit may be used up: once by the store, again by one that has forgotten, and once by
// each node that was alone. If nodes may be alone, it is at most the number of nodes.
func (c *checker) times(subject string) int {
	n := c.lives(subject)
	if c.Terms.Alone {
		n = min(n+len(c.alone[subject]), c.Nodes)
	}
	return n
}

// lives returns how often the store may have begun to count.
func (c *checker) lives(subject string) int {
	if c.forgotten(subject) {
		return 2
	}
	return 1
}

// mayForget reports whether the store may forget what it answered in a span of time.
func (c *checker) mayForget(s Span) bool {
	return c.Terms.Forgets && c.faultIn(Span{s.From, s.To + memory})
}

// forgotten reports whether the store may have forgotten what was done for a subject.
func (c *checker) forgotten(subject string) bool { return c.Terms.Forgets && c.touched[subject] }

// blur returns how far a window may be off, as a node alone does not know the store's clock to
// the millisecond.
func (c *checker) blur(subject string) int64 {
	if c.Terms.Alone && c.touched[subject] {
		return drift
	}
	return 0
}

// countedWith returns the tiers that a call is counted in or looks at, and the calls that may
// count there.
func (c *checker) countedWith(call *Call) ([]throttle.Tier, []*Call) {
	switch {
	case call.For == Verify:
		return []throttle.Tier{c.Guesses}, c.asked[Verify][call.Subject]
	case call.For == Take || call.For == Look && c.asked[Take][call.Subject] != nil:
		return []throttle.Tier{c.Action}, c.asked[Take][call.Subject]
	}
	return c.Tiers, c.asked[Send][call.Subject]
}
