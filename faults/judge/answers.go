package judge

import (
	"fmt"
	"slices"
)

// answers: nothing fails but by the fault and as it may, nothing is ever a fault on our side,
// and no caller is told that he did wrong.
func (d *docket) answers() {
	unknown := d.unknownKeys()
	for i := range d.Calls {
		c := &d.Calls[i]
		calm := d.Terms.Quiet || !d.struck(c.Span)
		if (d.Strained && c.Kind == storeUnavailable) || (c.Status == 504 && unknown[c.Key]) {
			continue
		}
		switch {
		case c.Status == 500:
			d.complain("answers", c.Subject, "node %d answered 500 for %s", c.Node, c.Subject)
		case c.Status == 0 && !d.Terms.Gone:
			d.complain("answers", c.Subject, "node %d was there and did not answer for %s, %s", c.Node, c.Subject, d.when(c.Span.From))
		case c.Kind == storeUnavailable && d.Terms.Alone && c.decidedAlone() && !d.unknownYet(c.Span):
			d.complain("answers", c.Subject, "node %d did not go on by itself for %s, %s", c.Node, c.Subject, d.when(c.Span.From))
		case c.Degraded && !d.Terms.Alone:
			d.complain("answers", c.Subject, "node %d went on by itself for %s, which none is to, %s", c.Node, c.Subject, d.when(c.Span.From))
		case c.Status > 500 && !d.Terms.mayFail(c.Kind):
			d.complain("answers", c.Subject, "the fault is no reason for what node %d answered for %s: %d %s, %s", c.Node, c.Subject, c.Status, c.Kind, d.when(c.Span.From))
		case !d.isAnswer(c):
			d.complain("answers", c.Subject, "node %d answered %d %s for %s, where no caller did wrong, %s", c.Node, c.Status, c.Kind, c.Subject, d.when(c.Span.From))
		case d.Terms.Refuses && c.admits() && d.held(c.Span):
			d.complain("answers", c.Subject, "node %d answered yes for %s in a fault where it is to refuse, %s", c.Node, c.Subject, d.when(c.Span.From))
		case calm && (c.Status == 0 || c.Status > 500 || (c.Degraded && !c.Replayed && !d.Strained)):
			d.complain("answers", c.Subject, "without need node %d answered %d %s (degraded %t) for %s, %s",
				c.Node, c.Status, c.Kind, c.Degraded, c.Subject, d.when(c.Span.From))
		}
	}
}

// unknownYet reports whether a node may not know yet that the store is away, in a call that may
// have begun before the fault.
func (d *docket) unknownYet(call Span) bool {
	return slices.ContainsFunc(d.Faults, func(f Span) bool {
		return f.From <= call.To && call.From <= f.From+d.Terms.Unknown && d.Terms.Unknown > 0
	})
}

// noes are the answers, other than failures, that are no yes.
var noes = [...][]string{
	Send:    {"429 quota-exceeded", "409 idempotency-in-flight"},
	Look:    {},
	Verify:  {"429 quota-exceeded", "422 code-incorrect", "410 code-expired"},
	Take:    {"429 quota-exceeded"},
	Release: {},
}

// isAnswer reports whether a call may be answered so by a node that is well, or by one that
// tells of a relay's refusal.
func (d *docket) isAnswer(c *Call) bool {
	switch {
	case c.Status == 0 || c.Status >= 500 || c.Status == 200:
		return true
	case c.Kind == recipientRejected:
		return c.For == Send && d.Terms.mayFail(recipientRejected) && (c.Replayed || d.struck(c.Span))
	case c.Kind == "idempotency-in-flight" && c.Key == "":
		return false
	}
	return slices.Contains(noes[c.For], fmt.Sprint(c.Status, " ", c.Kind))
}

// admits reports whether the answer gives a place, or says that a code is right.
func (c *Call) admits() bool {
	return c.Status == 200 && !c.Replayed && (c.For == Send || c.For == Take || c.For == Verify)
}

// held reports whether there was the same fault all the while.
func (r *Run) held(s Span) bool {
	return slices.ContainsFunc(r.Held, func(f Span) bool { return f.From < s.From && s.To < f.To })
}

// unknownKeys are those that were used during the fault: what nobody knew then is
// answered for ever.
func (d *docket) unknownKeys() map[string]bool {
	keys := map[string]bool{}
	for i := range d.Calls {
		if c := &d.Calls[i]; c.Key != "" && (d.Terms.Leases || !d.Terms.Quiet) && d.struck(c.Span) {
			keys[c.Key] = true
		}
	}
	return keys
}
