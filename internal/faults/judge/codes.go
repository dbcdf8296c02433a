package judge

import (
	"slices"
	"strings"
)

// codes: a code that was not mailed is never right, and one that was is right once. Guesses are bounded, so only a
// guess that was charged for all nodes is answered with "wrong".
func (c *checker) codes() {
	right := map[string]int{}
	for mailbox, calls := range c.asked[Verify] {
		wrong := 0
		for _, call := range calls {
			switch {
			case call.Status == 200 && !call.Right && !c.mailedCode(call):
				c.report("codes", mailbox, "node %d accepted a wrong code of %s", call.Node, mailbox)
			case call.Status == 200:
				right[mailbox+" "+call.Code]++
			case call.Kind == "code-incorrect":
				wrong++
			}
			c.rightCode(call, calls)
		}
		if wrong > c.Guesses.Limit*c.lives(mailbox) {
			c.report("codes", mailbox, "%s had %d guesses, %d are allowed", mailbox, wrong, c.Guesses.Limit)
		}
	}
	for code, n := range right {
		if mailbox, _, _ := strings.Cut(code, " "); n > c.times(mailbox) {
			c.report("codes", mailbox, "a code of %s was right %d times", mailbox, n)
		}
	}
}

// rightCode: a code that was mailed is right, while no other call can have used it up and there
// are guesses left. In a fault a node that is alone may not know of it.
func (c *checker) rightCode(call *Call, calls []*Call) {
	refused := call.Status == 410 || call.Status == 422 || call.Status == 429
	if !refused || !call.Right || !c.mailedCode(call) || c.usedUp(call, calls) || c.forgotten(call.Subject) || c.Terms.Alone && c.faultIn(call.Span) {
		return
	}
	c.report("codes", call.Subject, "node %d answered %d %s to a code that was mailed to %s",
		call.Node, call.Status, call.Kind, call.Subject)
}

// mailedCode reports whether a relay has accepted an email with the code.
func (c *checker) mailedCode(call *Call) bool {
	return slices.ContainsFunc(c.mailsOf[call.Subject], func(m Mail) bool { return m.Code == call.Code })
}

// usedUp reports whether another call may have used up the code, or the guesses.
func (c *checker) usedUp(call *Call, calls []*Call) bool {
	guesses := 0
	for _, other := range calls {
		if other == call || other.Span.From > call.Span.To || !other.mayCount() {
			continue
		}
		if other.Right && (other.Status == 0 || other.Status == 200 || other.Status >= 500) {
			return true
		}
		guesses++
	}
	return guesses >= c.Guesses.Limit
}
