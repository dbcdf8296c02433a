package judge

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// windows: no window of any mailbox has more mails than its tier, or than the nodes may
// send that had to go on by themselves.
func (d *docket) windows() {
	for mailbox, mails := range d.mailsOf {
		slices.SortFunc(mails, func(a, b Mail) int { return int(a.At - b.At) })
		for _, tier := range d.Tiers {
			if most := fullest(mails, tier.Window.Milliseconds()); most > tier.Limit*d.times(mailbox) {
				d.complain("windows", mailbox, "%s was sent %d mails in %d ms, the tier %s allows %d", mailbox, most, tier.Window.Milliseconds(), tier.Name, tier.Limit)
			}
			d.full(mailbox, mails, tier)
		}
	}
}

// full: what was asked for when all was well met all that was sent before, by whichever
// node. More than the tier is for as long as the fault lasts.
func (d *docket) full(mailbox string, mails []Mail, tier throttle.Tier) {
	if d.forgotten(mailbox) {
		return
	}
	for _, c := range d.asked[Send][mailbox] {
		if c.Status != 200 || c.Replayed || d.struck(c.Span) {
			continue
		}
		before := 0
		for _, m := range mails {
			if m.At < c.Span.From && c.Span.To-m.At < tier.Window.Milliseconds() {
				before++
			}
		}
		if before >= tier.Limit {
			d.complain("windows", mailbox, "node %d answered 200 for %s, which had %d mails in the tier %s already, %s",
				c.Node, mailbox, before, tier.Name, d.when(c.Span.From))
		}
	}
}

// fullest is how many mails, in order of time, the fullest window has.
func fullest(mails []Mail, window int64) (most int) {
	first := 0
	for last := range mails {
		for mails[last].At-mails[first].At >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
