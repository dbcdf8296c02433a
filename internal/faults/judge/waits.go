package judge

import "slices"

// waits: a denial is for a full tier, and lasts until an admission leaves it. So a wait cannot
// be longer than the window, one window before its end there was a call, and there have been as
// many since as the tier allows. A look is told no other wait.
func (c *checker) waits() {
	if c.Terms.ClockSet {
		return // by it waits were counted
	}
	for i := range c.Calls {
		call := &c.Calls[i]
		if (call.Kind == quotaExceeded || call.For == Look && call.Wait > 0) && !c.explained(call) {
			c.report("waits", call.Subject, "node %d told %s to wait %d ms for the tier %q, and no call is the cause",
				call.Node, call.Subject, call.Wait, call.Limit)
		}
	}
}

// explained reports whether calls may have filled the tier that a denied one has to wait for,
// of which the first leaves when the wait ends. A take that was refunded a moment before may be one of
// them, as another node may remember it.
func (c *checker) explained(denied *Call) bool {
	tiers, calls := c.countedWith(denied)
	for _, tier := range tiers {
		if tier.Name != denied.Limit || denied.Wait <= 0 || denied.Wait > tier.Window.Milliseconds() {
			continue
		}
		earliest, latest := denied.Clock, denied.Clock
		if denied.Door {
			earliest, latest = denied.Span.From, denied.Span.To
		}
		began, first, all := denied.Wait-tier.Window.Milliseconds(), false, 0
		for _, call := range calls {
			mayCount := call != denied && (call.mayCount() || c.mayBeUnheard(call, denied)) &&
				(!c.isBack(call, denied.Span.From-remembered) || c.mayBeUnseen(call.Subject))
			if !mayCount || call.Span.From > denied.Span.To || call.Span.To+drift < earliest+began {
				continue
			}
			first = first || call.Span.From-drift <= latest+began
			all++
		}
		if first && all >= tier.Limit {
			return true
		}
	}
	return false
}

// remembered is for how many milliseconds after a refund a node may refuse by what it remembers.
const remembered = 1000

// mayBeUnheard reports whether a call that was refused may count at the moment of another: the
// store admitted it, and its node did not hear of it. So it is while the node still asks, and
// where the node has then refused alone, until it has met the store again.
func (c *checker) mayBeUnheard(call, denied *Call) bool {
	if !c.Terms.Alone || call.Kind != quotaExceeded || call.For != Send && call.For != Take {
		return false
	}
	return slices.ContainsFunc(c.Faults, func(f Span) bool {
		return call.Span.meets(f) && (call.Span.To >= denied.Span.From || call.Degraded && denied.Span.meets(f))
	})
}
