package rules

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// A Decision is what all rules together say of a send.
type Decision struct {
	// Allowed says whether the send is admitted; after Peek, whether one would be.
	Allowed bool
	// Rule is the one that makes the next such send wait longest, and Verdict is its
	// own: Limit, Wait and RetryAt are in it. By is what that rule counts by. Empty when
	// nothing has to wait; then Verdict has the clock and no limit, and not even the
	// clock where no rule applies.
	Rule    string
	By      By
	Verdict throttle.Verdict
	// Mailbox is the verdict of MailboxRule, whoever else objects. Of a mailbox that
	// it leaves alone it has no tiers.
	Mailbox throttle.Verdict
	// Delay is how many milliseconds the admitted send has to be held back.
	Delay int64
	// Degraded says that a rule could not reach the history it shares with other
	// processes, and went by what this one has; Verdict says so too, whichever rule it is.
	Degraded bool
	// Refusals are all rules that said no.
	Refusals []Refusal
	// Shadow are the rules in the shadow that would have refused what all others admit:
	// the difference that they would make. Those that failed are always among them.
	Shadow []Refusal
	// Owed says that a rule was charged, or may have been, for a send that is refused or
	// not decided, and was not given its place back: Release has to be tried, again. To
	// Take again under this id is no remedy: that needs a new one.
	Owed bool
}

// A Refusal is a rule that said no. One in the shadow may also have failed.
type Refusal struct {
	Rule    string
	Verdict throttle.Verdict
	Err     error
}

// decide puts the answers of a round together, of which the send under this id is.
func decide(round []asked, id throttle.ID) Decision {
	shortenWaits(round, id)
	d := Decision{Allowed: true}
	for i := range round {
		a := &round[i]
		d.Degraded = d.Degraded || a.verdict.Degraded
		if a.rule.Name == MailboxRule {
			d.Mailbox = a.verdict
		}
		refusal := Refusal{a.rule.Name, a.verdict, a.err}
		switch {
		case a.rule.Shadow:
			if a.err != nil || !a.verdict.Allowed {
				d.Shadow = append(d.Shadow, refusal)
			}
		case !a.verdict.Allowed:
			d.Allowed = false
			d.Refusals = append(d.Refusals, refusal)
		}
	}
	if !d.Allowed {
		d.Shadow = slices.DeleteFunc(d.Shadow, func(r Refusal) bool { return r.Err == nil })
	}
	d.bind(round)
	return d
}

// bind finds the rule to wait for: of a refusal the one that refuses longest, else the
// one that the next send has to wait for longest.
func (d *Decision) bind(round []asked) {
	// Not the mailbox's verdict, which may be in the shadow or leave this one alone.
	d.Verdict = throttle.Verdict{Allowed: d.Allowed, Now: clockOf(round), Degraded: d.Degraded}
	for i := range round {
		a := &round[i]
		if a.rule.Shadow || a.verdict.Allowed != d.Allowed {
			continue
		}
		d.Delay = max(d.Delay, a.verdict.Delay) // of a refusal 0
		d.waitFor(a.rule, &a.verdict)
	}
}

// waitFor names the rule if it makes the next send wait longer than the one named.
func (d *Decision) waitFor(r *Rule, v *throttle.Verdict) {
	if v.RetryAt()-v.Now > d.Verdict.RetryAt()-d.Verdict.Now {
		d.Rule, d.By, d.Verdict = r.Name, r.By, *v
	}
	d.Degraded = d.Degraded || v.Degraded
	d.Verdict.Degraded = d.Degraded
}

// clockOf is the latest clock that a round of answers was reached at.
func clockOf(round []asked) (now int64) {
	for i := range round {
		now = max(now, round[i].verdict.Now)
	}
	return now
}
