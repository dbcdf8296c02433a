package judge

import (
	"fmt"
	"slices"
)

// keys: a key is one email, and its answer stays the same byte for byte. An answer that a node
// gave alone is that node's until the store was told of it: then it is the answer of the node that
// told first. One that the store may have forgotten may change.
func (c *checker) keys() {
	c.retries()
	c.mailsOfKeys()
	first, alone := map[string]*Call{}, map[string]bool{}
	for i := range c.Calls {
		call := &c.Calls[i]
		touched := c.touched[call.Subject]
		if call.Key == "" || !call.charged() || touched && (c.Terms.Forgets || c.Terms.ClockSet && call.Status == 504) {
			continue
		}
		name := call.Key
		if c.Terms.Alone && call.Degraded && !call.Replayed {
			alone[call.Key+call.Body] = true
		}
		if call.Replayed && alone[call.Key+call.Body] && !c.held(call.Span) {
			continue
		}
		if c.Terms.Alone && (call.Degraded || call.Status == 504 && touched) {
			name = fmt.Sprint(call.Key, " at ", call.Node)
		}
		if before := first[name]; before == nil {
			first[name] = call
		} else if before.Body != call.Body || before.Status != call.Status {
			c.report("keys", call.Subject, "the key %s was answered %d %s, and then %d %s", name, before.Status, before.Body, call.Status, call.Body)
		}
	}
}

// mailsOfKeys: a mailbox that was requested with one key only was sent one email, unless nodes
// decided alone or the store forgot.
func (c *checker) mailsOfKeys() {
	for mailbox, calls := range c.asked[Send] {
		other := func(call *Call) bool { return call.Key == "" || call.Key != calls[0].Key }
		if n := len(c.mailsOf[mailbox]); n > c.times(mailbox) && !slices.ContainsFunc(calls, other) {
			c.report("key-mails", mailbox, "%s was sent %d emails for the key %s", mailbox, n, calls[0].Key)
		}
	}
}

// retries: a retry with a key after its 200 is not told to wait, or that the key or the email is
// invalid.
func (c *checker) retries() {
	done := map[string][]*Call{}
	for i := range c.Calls {
		if call := &c.Calls[i]; call.Key != "" && call.Status == 200 {
			done[call.Key] = append(done[call.Key], call)
		}
	}
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Key == "" || call.charged() || call.Status == 0 || call.Status >= 500 {
			continue
		}
		for _, before := range done[call.Key] {
			if before.Span.To < call.Span.From && !c.mayNotKnow(call.Node, call.Span, before) {
				c.report("keys", call.Subject, "the key %s was answered %d by node %d, and then %d %s by node %d",
					call.Key, before.Status, before.Node, call.Status, call.Kind, call.Node)
				break
			}
		}
	}
}

// mayNotKnow reports whether a node may not know the answer to a key. The store has forgotten it, could not be
// told, or cannot be asked about that of another node. A node that cannot tell the store
// keeps its own answer when it knows that the store is away.
func (c *checker) mayNotKnow(node int, at Span, done *Call) bool {
	if c.Terms.Alone {
		return c.forgotten(done.Subject) || node != done.Node && c.faultIn(at) ||
			c.mayNotKnowYet(done.Span) && c.mayNotKnowYet(at)
	}
	return c.forgotten(done.Subject) || c.Terms.mayFail(storeUnavailable) && (c.Strained || c.faultIn(done.Span))
}
