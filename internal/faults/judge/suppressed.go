package judge

import "slices"

// known is how soon after its answer all nodes know a change of the suppression list, if they reach the store.
const known = 1000

// suppressed: nothing is sent to who is suppressed, and nothing refused to who is not. A fault within the time in
// which nodes learn a change may keep it from them.
func (c *checker) suppressed() {
	for subject, sends := range c.asked[Send] {
		for _, call := range sends {
			on, off := c.last(Suppress, call), c.last(Lift, call)
			switch {
			case call.Status == 200 && !call.Replayed && on != nil && c.inForce(on, call) && !c.changedSince(Lift, on, call):
				c.report("suppressed", subject, "node %d sent %s, which was suppressed %d ms before", call.Node, call.ID, call.Span.From-on.Span.To)
			case call.Kind == Suppressed && (on == nil && !c.changedSince(Suppress, &Call{}, call) || off != nil && c.inForce(off, call) && !c.changedSince(Suppress, off, call)):
				c.report("suppressed", subject, "node %d refused a mailbox that is not suppressed", call.Node)
			}
		}
	}
}

// last returns the last change of a kind that was answered before a call, of those that were made.
func (c *checker) last(what Purpose, call *Call) (last *Call) {
	for _, one := range c.asked[what][call.Subject] {
		if one.Status == 204 && one.Span.To <= call.Span.From && (last == nil || one.Span.To > last.Span.To) {
			last = one
		}
	}
	return last
}

// inForce reports whether all nodes know of a change when a call begins.
func (c *checker) inForce(change, call *Call) bool {
	return call.Span.From > change.Span.To+known && !c.Strained && !c.faultIn(Span{change.Span.From, change.Span.To + memory})
}

// changedSince reports whether the opposite change may have been made from the beginning of one to the end of a call.
func (c *checker) changedSince(what Purpose, one, call *Call) bool {
	return slices.ContainsFunc(c.asked[what][call.Subject], func(other *Call) bool {
		return other.Kind != NotAsked && other.Span.meets(Span{one.Span.From, call.Span.To})
	})
}
