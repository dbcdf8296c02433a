package judge

// limits: no window of a mailbox or subject has more emails or takes than its tier allows, or
// than all nodes that were alone may admit. In calm, a call met all that was
// admitted before, by any node: a full tier admits nothing, and a look says that it is full.
func (c *checker) limits() {
	for mailbox, mails := range c.mailsOf {
		for _, tier := range c.Tiers {
			if n := len(mails); n > tier.Limit*c.times(mailbox) {
				c.report("limits", mailbox, "%s was sent %d emails, and the tier %s allows %d", mailbox, n, tier.Name, tier.Limit)
			}
		}
	}
	for subject, takes := range c.asked[Take] {
		c.takes(subject, takes)
	}
	for i := range c.Calls {
		c.metAll(&c.Calls[i])
	}
}

// takes: no two takes of a subject have one id, what is refunded was on record, and no window has
// too many that were not refunded.
func (c *checker) takes(subject string, takes []*Call) {
	window, ids := c.Action.Window.Milliseconds(), map[string]bool{}
	for _, one := range takes {
		if one.Status != 200 {
			continue
		}
		if ids[one.ID] {
			c.report("limits", subject, "two takes of %s have the id %s", subject, one.ID)
		}
		ids[one.ID] = true
		back := c.back[one.ID]
		if back != nil && back.Status == 200 && !back.Released && !c.mayBeUnseen(subject) && back.Span.To-one.Span.From < window {
			c.report("limits", subject, "node %d did not find the take %s of %s", back.Node, one.ID, subject)
		}
		with := 0
		for _, other := range takes {
			if other.Status == 200 && other.Span.To <= one.Span.To && c.counts(other, one.Span.To, window-c.blur(subject)) {
				with++
			}
		}
		if with > c.Action.Limit*c.times(subject) {
			c.report("limits", subject, "%s took %d times in one window, %d are allowed", subject, with, c.Action.Limit)
		}
	}
}

// metAll: a full tier admits nothing, and a look at it says so. A node alone does not see what
// others have admitted.
func (c *checker) metAll(call *Call) {
	lookAtRoom := call.For == Look && call.Status == 200 && call.Wait == 0
	switch {
	case !lookAtRoom && (!call.admits() || call.For == Verify):
		return
	case c.forgotten(call.Subject) || c.faultIn(call.Span) && (c.Terms.Alone || !lookAtRoom):
		return
	}
	tiers, calls := c.countedWith(call)
	for _, tier := range tiers {
		if n := c.certain(calls, call.Subject, call.Span, tier.Window.Milliseconds()-c.blur(call.Subject)); n >= tier.Limit {
			c.report("limits", call.Subject, "node %d found room for %s, which had %d in the tier %s",
				call.Node, call.Subject, n, tier.Name)
		}
	}
}

// certain returns how many admissions count for certain all through a span.
func (c *checker) certain(calls []*Call, subject string, at Span, window int64) int {
	ids := map[string]bool{}
	for _, call := range calls {
		if call.charged() && call.ID != "" && call.Span.To < at.From && c.counts(call, at.To, window) {
			ids[call.ID] = true
		}
	}
	for _, m := range c.mailsOf[subject] {
		if m.At < at.From && at.To-m.At < window {
			ids[m.ID] = true
		}
	}
	return len(ids)
}

// counts reports whether an admission is in its window at a moment and certainly was not refunded.
func (c *checker) counts(call *Call, at, window int64) bool {
	back := c.back[call.ID]
	return at-call.Span.From < window && (call.For != Take || back == nil || back.Span.From > at)
}

// isBack reports whether a take certainly has been refunded by a moment. A node that took it alone
// may yet sync it where another has refunded it, and a store may forget the refund.
func (c *checker) isBack(call *Call, by int64) bool {
	back := c.back[call.ID]
	return call.For == Take && call.Status == 200 && back != nil && back.Released && back.Span.To < by &&
		(back.Node == call.Node || !call.Degraded) && !c.mayForget(back.Span)
}

// mayBeUnseen reports whether a node that was alone may have taken or refunded what the others do
// not see, or the store may have forgotten it.
func (c *checker) mayBeUnseen(subject string) bool {
	return c.touched[subject] && (c.Terms.Alone || c.Terms.Forgets)
}
