package judge

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// drift is by how much the clocks of a node and of whoever keeps the record may differ:
// a node that has lost its store goes on by what it knows of that one's clock.
const drift = 250

// waits: a no is for a full tier, and lasts until a place in it leaves. So a wait cannot be
// longer than the window, one window before its end somebody was asking, and there have been
// as many since as there are places. A look at how it stands is told no other wait.
func (d *docket) waits() {
	if d.Terms.Leases {
		return // the clock by which waits were counted has been set
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		if (c.Kind == quotaExceeded || c.For == Look && c.Wait > 0) && !d.waitsFor(c) {
			d.complain("waits", c.Subject, "node %d told %s to wait %d ms for the tier %q, and nothing asked for is the cause, %s",
				c.Node, c.Subject, c.Wait, c.Limit, d.when(c.Span.From))
		}
	}
}

// limits are the tiers that a call is counted in or looks at, and the calls that may count
// there.
func (d *docket) limits(c *Call) ([]throttle.Tier, []*Call) {
	switch {
	case c.For == Verify:
		return []throttle.Tier{d.Guesses}, d.asked[Verify][c.Subject]
	case c.For == Take || c.For == Look && d.asked[Take][c.Subject] != nil:
		return []throttle.Tier{d.Action}, d.asked[Take][c.Subject]
	}
	return d.Tiers, d.asked[Send][c.Subject]
}

// waitsFor reports whether calls may have filled the tier that a denied one has to wait for,
// of which the first leaves when it may ask again.
func (d *docket) waitsFor(denied *Call) bool {
	tiers, calls := d.limits(denied)
	for _, tier := range tiers {
		if tier.Name != denied.Limit || denied.Wait <= 0 || denied.Wait > tier.Window.Milliseconds() {
			continue
		}
		began, first, all := denied.Clock+denied.Wait-tier.Window.Milliseconds(), false, 0
		for _, c := range calls {
			if c == denied || !c.mayCount() && !d.mayBeUnheard(c, denied) || c.Span.From > denied.Span.To || c.Span.To+drift < began || d.isBack(c, denied.Span.From) {
				continue
			}
			first = first || c.Span.From-drift <= began
			all++
		}
		if first && all >= tier.Limit {
			return true
		}
	}
	return false
}

// mayBeUnheard reports whether a call that was refused may have a place at the moment of another:
// the store gave one, and its node did not hear of it. So it is while the node still asks, and
// where the node has then said no by itself, until it has met the store again.
func (d *docket) mayBeUnheard(c, denied *Call) bool {
	if !d.Terms.Alone || c.Kind != quotaExceeded || c.For != Send && c.For != Take {
		return false
	}
	return slices.ContainsFunc(d.Faults, func(f Span) bool {
		return c.Span.meets(f) && (c.Span.To >= denied.Span.From || c.Degraded && denied.Span.meets(f))
	})
}

// isBack reports whether a take certainly has been given back by then, for whoever asks.
func (d *docket) isBack(c *Call, by int64) bool {
	back := d.back[c.ID]
	return c.For == Take && c.Status == 200 && back != nil && back.Released && back.Span.To < by && !d.mayBeUnseen(c.Subject)
}

// looks: who looks is not told that there is a place where a tier is full. A node that is
// alone does not see what others have admitted.
func (d *docket) looks() {
	for i := range d.Calls {
		c := &d.Calls[i]
		if c.For != Look || c.Status != 200 || c.Wait > 0 || d.forgotten(c.Subject) || d.Terms.Alone && d.struck(c.Span) {
			continue
		}
		tiers, calls := d.limits(c)
		for _, tier := range tiers {
			if n := d.certain(calls, c.Span, tier.Window.Milliseconds()-d.blur(c.Subject)); n >= tier.Limit {
				d.complain("looks", c.Subject, "node %d was asked how %s stands, and did not tell of %d in the tier %s, %s",
					c.Node, c.Subject, n, tier.Name, d.when(c.Span.From))
			}
		}
	}
}

// certain is how many places are taken for sure all through a look.
func (d *docket) certain(calls []*Call, look Span, window int64) int {
	ids := map[string]bool{}
	for _, c := range calls {
		if c.charged() && c.ID != "" && c.Span.To < look.From && look.To-c.Span.From < window && !(take{c, d.back[c.ID]}).mayBeBack(look.To) {
			ids[c.ID] = true
		}
	}
	return len(ids)
}
