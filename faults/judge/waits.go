package judge

// drift is by how much the clocks of a node and of whoever keeps the record may differ:
// a node that has lost its store goes on by what it knows of that one's clock.
const drift = 250

// waits: a no is for a full tier, and lasts until a send that may count in it leaves. So
// a wait cannot be longer than the window, and one window before its end somebody was
// sending.
func (d *docket) waits() {
	if d.Terms.Leases {
		return // the clock by which waits were counted has been set
	}
	for mailbox, calls := range d.asked[Send] {
		for _, c := range calls {
			if c.Kind == "quota-exceeded" && !d.waitsFor(c, calls) {
				d.complain("waits", mailbox, "node %d told %s to wait %d ms for the tier %q, and no send is the cause, %s",
					c.Node, mailbox, c.Wait, c.Limit, d.when(c.Span.From))
			}
		}
	}
}

// waitsFor reports whether one of the calls may be what a denied one has to wait for.
func (d *docket) waitsFor(denied *Call, calls []*Call) bool {
	for _, tier := range d.Tiers {
		if tier.Name != denied.Limit || denied.Wait <= 0 || denied.Wait > tier.Window {
			continue
		}
		began := denied.Clock + denied.Wait - tier.Window
		for _, c := range calls {
			if c.mayCount() && c.Span.From-drift <= began && began <= c.Span.To+drift {
				return true
			}
		}
	}
	return false
}
