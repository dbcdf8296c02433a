package judge

import (
	"fmt"
	"slices"
)

// answers: nothing fails but by the fault and as it may, there is no internal error, and no
// answer blames the caller.
func (c *checker) answers() {
	unknown := c.unknownKeys()
	for i := range c.Calls {
		call := &c.Calls[i]
		if c.Strained && call.Kind == storeUnavailable || call.Status == 504 && (unknown[call.Key] || call.Door && call.Replayed) || call.Kind == Lost {
			continue
		}
		if wrong := c.wrong(call); wrong != "" {
			c.report("answers", call.Subject, "%s: node %d answered %d %s (degraded %t) for %s",
				wrong, call.Node, call.Status, call.Kind, call.Degraded, call.Subject)
		}
	}
}

// wrong says why a call must not be answered so, if it must not.
func (c *checker) wrong(call *Call) string {
	calm := c.Terms.Quiet || !c.faultIn(call.Span)
	switch {
	case call.Status == 500:
		return "internal error"
	case call.Status == 0 && !c.Terms.Gone:
		return "no answer of a node that can be reached"
	case call.Kind == storeUnavailable && c.Terms.Alone && call.decidedAlone() && !c.mayNotKnowYet(call.Span) && !c.mayHaveChanged(call) && !c.mayLackReply(call):
		return "not continued alone"
	case call.Degraded && !c.Terms.Alone:
		return "continued alone, which no node may"
	case call.Status > 500 && !c.Terms.mayFail(call.Kind):
		return "the fault is no reason for this"
	case !c.isAnswer(call):
		return "the caller did nothing wrong"
	case c.Terms.Refuses && call.admits() && c.held(call.Span):
		return "admitted in a fault where it must refuse"
	case calm && (call.Status == 0 || call.Status > 500 || call.Degraded && !call.Replayed && !c.Strained):
		return "there was no need"
	}
	return ""
}

// mayNotKnowYet reports whether a node may not have noticed yet that the store is away. The call may have begun
// before the fault, or met a connection that the fault broke after the store was back.
func (c *checker) mayNotKnowYet(call Span) bool {
	if c.Terms.Unknown == 0 {
		return false
	}
	back := func(held Span) bool { return held.To <= call.To && call.From <= held.To+broken }
	return slices.ContainsFunc(c.Held, back) || slices.ContainsFunc(c.Faults, func(f Span) bool {
		return f.From <= call.To && call.From <= f.From+c.Terms.Unknown
	})
}

// mayHaveChanged reports whether the store may have gone or come back during an email by SMTP, which then is
// deferred.
func (c *checker) mayHaveChanged(call *Call) bool { return call.Door && !c.held(call.Span) }

// mayLackReply reports whether the fault began during a call, and may have lost a reply. What may have been done is not
// repeated, such as storing a code, so the call is 503.
func (c *checker) mayLackReply(call *Call) bool {
	return call.For != Look && slices.ContainsFunc(c.Faults, func(f Span) bool { return call.Span.From < f.From && f.From <= call.Span.To })
}

// broken is for how long after a repair calls may meet broken connections. It is a timeout of the campaign, and
// as long again for a probe to be answered on a busy machine.
const broken = 2000

// denials are the answers, other than failures, that are not 200.
var denials = [...][]string{
	Send:    {"429 quota-exceeded", "409 idempotency-in-flight", "409 " + StillSent, "499 " + Abandoned},
	Look:    {},
	Verify:  {"429 quota-exceeded", "422 code-incorrect", "410 code-expired"},
	Take:    {"429 quota-exceeded"},
	Release: {},
	Lift:    {},
}

// isAnswer reports whether a call may be answered so by a healthy node, or by one that passes
// on a relay's refusal.
func (c *checker) isAnswer(call *Call) bool {
	switch {
	case call.Status == 0 || call.Status >= 500 || call.Status == 200 || call.Status == 204 && call.For >= Suppress:
		return true
	case call.Kind == recipientRejected:
		return call.For == Send && c.Terms.mayFail(recipientRejected) && (call.Replayed || c.faultIn(call.Span))
	case call.Kind == Suppressed:
		return call.For == Send // and the list says so
	case call.Kind == "idempotency-in-flight" && call.Key == "":
		return false
	}
	return slices.Contains(denials[call.For], fmt.Sprint(call.Status, " ", call.Kind))
}

// held reports whether the same fault lasted all through a span.
func (r *Run) held(s Span) bool {
	return slices.ContainsFunc(r.Held, func(f Span) bool { return f.From < s.From && s.To < f.To })
}

// unknownKeys returns those that were used during the fault: what was unknown then is answered
// so for good.
func (c *checker) unknownKeys() map[string]bool {
	keys := map[string]bool{}
	for i := range c.Calls {
		if call := &c.Calls[i]; call.Key != "" && (c.Terms.ClockSet || !c.Terms.Quiet) && c.faultIn(call.Span) {
			keys[call.Key] = true
		}
	}
	return keys
}
