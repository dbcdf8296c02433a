package judge

import (
	"fmt"
	"slices"
)

// Judge finds every violation in a run.
func Judge(run *Run) []Violation {
	d := newDocket(run)
	d.answers()
	d.windows()
	d.waits()
	d.looks()
	d.mails()
	d.keys()
	d.actions()
	d.codes()
	d.standings()
	return d.found
}

// A docket is a run put in order, and what was found in it.
type docket struct {
	*Run
	asked   [Release + 1]map[string][]*Call // by mailbox or subject
	mailsOf map[string][]Mail               // taken over, by mailbox
	byID    map[string][]Mail               // taken over
	back    map[string]*Call                // releases that were asked for, by what they give back
	touched map[string]bool                 // who was asked for during the fault
	alone   map[string][]int                // which nodes may have decided about them by themselves then
	found   []Violation
}

// memory is how long before a fault an answer may be that the fault makes a store forget.
const memory = 2000

func newDocket(run *Run) *docket {
	d := &docket{Run: run, mailsOf: map[string][]Mail{}, byID: map[string][]Mail{},
		back: map[string]*Call{}, touched: map[string]bool{}, alone: map[string][]int{}}
	for i := range d.asked {
		d.asked[i] = map[string][]*Call{}
	}
	for i := range run.Calls {
		c := &run.Calls[i]
		d.asked[c.For][c.Subject] = append(d.asked[c.For][c.Subject], c)
		if c.For == Release && c.Kind != NotAsked {
			d.back[c.ID] = c
		}
		if run.struck(Span{c.Span.From, c.Span.To + memory}) {
			d.touched[c.Subject] = true
			if c.mayBeAlone() && !slices.Contains(d.alone[c.Subject], c.Node) {
				d.alone[c.Subject] = append(d.alone[c.Subject], c.Node)
			}
		}
	}
	for _, m := range run.Mails {
		if !m.Refused {
			d.mailsOf[m.Mailbox] = append(d.mailsOf[m.Mailbox], m)
			d.byID[m.ID] = append(d.byID[m.ID], m)
		}
	}
	return d
}

// struck reports whether there was a fault in a stretch of time.
func (r *Run) struck(s Span) bool { return slices.ContainsFunc(r.Faults, s.meets) }

func (d *docket) complain(rule, subject, format string, args ...any) {
	d.found = append(d.found, Violation{rule, fmt.Sprintf(format, args...), subject})
}

// times is how often a limit may be used up for someone: by the store, again by one that
// has forgotten, and by each node that was alone, but never more often than there are
// nodes, if any may be.
func (d *docket) times(subject string) int {
	n := d.lives(subject)
	if d.Terms.Alone {
		n = min(n+len(d.alone[subject]), d.Nodes)
	}
	return n
}

// lives is how often the store may have begun to count for someone.
func (d *docket) lives(subject string) int {
	if d.forgotten(subject) {
		return 2
	}
	return 1
}

// forgotten reports whether the store may have forgotten what was done for someone.
func (d *docket) forgotten(subject string) bool { return d.Terms.Forgets && d.touched[subject] }

// when says where a moment lies from the last fault before it, or the first.
func (d *docket) when(at int64) string {
	if len(d.Faults) == 0 {
		return "and there was no fault"
	}
	near := d.Faults[0]
	for _, f := range d.Faults {
		if f.From <= at {
			near = f
		}
	}
	return fmt.Sprintf("%d ms after a fault began that took %d", at-near.From, near.To-near.From)
}

// mails: every yes has its mail, an admission has one at most, and no mail is without an
// answer that accounts for it.
func (d *docket) mails() {
	for mailbox, calls := range d.asked[Send] {
		accounted, silent := map[string]bool{}, 0
		for _, c := range calls {
			switch {
			case c.lost():
				silent++
			case c.Status == 200 || c.Status == 504:
				accounted[c.ID] = true
			}
			if c.Status == 200 {
				d.hasItsMail(c)
			}
		}
		for _, m := range d.mailsOf[mailbox] {
			if !accounted[m.ID] {
				accounted[m.ID] = true
				silent--
			}
		}
		if silent < 0 {
			d.complain("mails", mailbox, "%s was sent %d mails that no answer accounts for", mailbox, -silent)
		}
	}
	for mailbox := range d.mailsOf {
		if d.asked[Send][mailbox] == nil {
			d.complain("mails", mailbox, "%s was sent a mail that nobody asked for", mailbox)
		}
	}
	for id, mails := range d.byID {
		if len(mails) > 1 {
			d.complain("mails", mails[0].Mailbox, "the admission %s of %s has %d mails", id, mails[0].Mailbox, len(mails))
		}
	}
}

func (d *docket) hasItsMail(c *Call) {
	if !slices.ContainsFunc(d.byID[c.ID], func(m Mail) bool { return m.Mailbox == c.Subject }) {
		d.complain("mails", c.Subject, "node %d answered 200 for %s, and no relay has the mail %s", c.Node, c.Subject, c.ID)
	}
}
