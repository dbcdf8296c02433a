package judge

import (
	"fmt"
	"slices"
)

// keys: a key is one mail, and its answer stays the same byte for byte. One that a node
// made alone is that node's; one that the store may have forgotten is nobody's.
func (d *docket) keys() {
	d.retries()
	d.mailsOfKeys()
	first := map[string]*Call{}
	for i := range d.Calls {
		c := &d.Calls[i]
		if c.Key == "" || !c.charged() || (d.touched[c.Subject] && (d.Terms.Forgets || d.Terms.Leases && c.Status == 504)) {
			continue
		}
		name := c.Key
		if d.Terms.Alone && (c.Degraded || c.Status == 504 && d.touched[c.Subject]) {
			name = fmt.Sprint(c.Key, " at ", c.Node)
		}
		if before := first[name]; before == nil {
			first[name] = c
		} else if before.Body != c.Body || before.Status != c.Status {
			d.complain("keys", c.Subject, "the key %s was answered %d %s, and then %d %s", name, before.Status, before.Body, c.Status, c.Body)
		}
	}
}

// mailsOfKeys: a mailbox that was asked for with one key only was sent one mail, unless nodes
// decided alone or the store forgot.
func (d *docket) mailsOfKeys() {
	for mailbox, calls := range d.asked[Send] {
		other := func(c *Call) bool { return c.Key == "" || c.Key != calls[0].Key }
		if n := len(d.mailsOf[mailbox]); n > d.times(mailbox) && !slices.ContainsFunc(calls, other) {
			d.complain("key-mails", mailbox, "%s was sent %d mails for the key %s", mailbox, n, calls[0].Key)
		}
	}
}

// retries: who asks again with a key when its yes is out is not told to wait, or that the
// key or the mail will not do.
func (d *docket) retries() {
	yes := map[string][]*Call{}
	for i := range d.Calls {
		if c := &d.Calls[i]; c.Key != "" && c.Status == 200 {
			yes[c.Key] = append(yes[c.Key], c)
		}
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		if c.Key == "" || c.charged() || c.Status == 0 || c.Status >= 500 {
			continue
		}
		for _, before := range yes[c.Key] {
			if before.Span.To < c.Span.From && !d.mayNotKnow(c.Node, c.Span, before) {
				d.complain("keys", c.Subject, "the key %s was answered %d by node %d, and then %d %s by node %d, %s",
					c.Key, before.Status, before.Node, c.Status, c.Kind, c.Node, d.when(c.Span.From))
				break
			}
		}
	}
}

// mayNotKnow reports whether a node may not know of a yes to a key: the store has forgotten
// it, cannot be asked about that of another, or could not be told.
func (d *docket) mayNotKnow(node int, at Span, yes *Call) bool {
	if d.Terms.Alone {
		return d.forgotten(yes.Subject) || node != yes.Node && d.struck(at)
	}
	return d.forgotten(yes.Subject) || d.Terms.mayFail(storeUnavailable) && (d.Strained || d.struck(yes.Span))
}
