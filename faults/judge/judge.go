package judge

import (
	"fmt"
	"slices"
	"strings"
)

// Judge finds every violation in a run.
func Judge(run *Run) []Violation {
	d := newDocket(run)
	d.answers()
	d.windows()
	d.waits()
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
	sends   map[string][]*Call // by mailbox
	mailsOf map[string][]Mail  // taken over, by mailbox
	byID    map[string][]Mail  // taken over
	touched map[string]bool    // who was asked for during the fault
	alone   map[string][]int   // which nodes may have decided about them by themselves then
	found   []Violation
}

// memory is how long before a fault an answer may be that the fault makes a store forget.
const memory = 2000

func newDocket(run *Run) *docket {
	d := &docket{Run: run, sends: map[string][]*Call{}, mailsOf: map[string][]Mail{}, byID: map[string][]Mail{},
		touched: map[string]bool{}, alone: map[string][]int{}}
	for i := range run.Calls {
		c := &run.Calls[i]
		if c.For == Send {
			d.sends[c.Subject] = append(d.sends[c.Subject], c)
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
	n := 1
	if d.forgotten(subject) {
		n++
	}
	if d.Terms.Alone {
		n = min(n+len(d.alone[subject]), d.Nodes)
	}
	return n
}

// forgotten reports whether the store may have forgotten what was done for someone.
func (d *docket) forgotten(subject string) bool { return d.Terms.Forgets && d.touched[subject] }

// answers: nothing fails but by the fault, and nothing is ever a fault on our side.
func (d *docket) answers() {
	unknown := d.unknownKeys()
	for i := range d.Calls {
		c := &d.Calls[i]
		calm := d.Terms.Quiet || !d.struck(c.Span)
		if (d.Strained && c.Kind == "store-unavailable") || (c.Status == 504 && unknown[c.Key]) {
			continue
		}
		switch {
		case c.Status == 500:
			d.complain("answers", c.Subject, "node %d answered 500 for %s", c.Node, c.Subject)
		case c.Status == 0 && !d.Terms.Gone:
			d.complain("answers", c.Subject, "node %d was there and did not answer for %s, %s", c.Node, c.Subject, d.when(c.Span.From))
		case c.Kind == "store-unavailable" && d.Terms.Alone && c.decidedAlone():
			d.complain("answers", c.Subject, "node %d did not go on by itself for %s, %s", c.Node, c.Subject, d.when(c.Span.From))
		case calm && (c.Status == 0 || c.Status > 500 || (c.Degraded && !c.Replayed)):
			d.complain("answers", c.Subject, "without need node %d answered %d %s (degraded %t) for %s, %s",
				c.Node, c.Status, c.Kind, c.Degraded, c.Subject, d.when(c.Span.From))
		}
	}
}

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

// unknownKeys are those that were used during the fault: what nobody knew then is
// answered for ever.
func (d *docket) unknownKeys() map[string]bool {
	keys := map[string]bool{}
	for i := range d.Calls {
		if c := &d.Calls[i]; c.Key != "" && (d.Terms.Leases || !d.Terms.Quiet) && d.struck(c.Span) {
			keys[c.Key] = true
		}
	}
	return keys
}

// mails: every yes has its mail, an admission has one at most, and no mail is without an
// answer that accounts for it.
func (d *docket) mails() {
	for mailbox, calls := range d.sends {
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
		if d.sends[mailbox] == nil {
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

// keys: a key is one mail, and its answer stays the same byte for byte. One that a node
// made alone is that node's; one that the store may have forgotten is nobody's.
func (d *docket) keys() {
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

// codes: a code that was not mailed is never right, one that was is right once, and new
// guesses are never free.
func (d *docket) codes() {
	right, wrong := map[string]int{}, map[string]int{}
	for i := range d.Calls {
		c := &d.Calls[i]
		switch {
		case c.For != Verify:
		case c.Status == 200 && !c.Right:
			d.complain("codes", c.Subject, "node %d took a wrong code of %s for the right one", c.Node, c.Subject)
		case c.Status == 200:
			right[c.Subject+" "+c.Code]++
		case c.Kind == "code-incorrect":
			wrong[c.Subject]++
		}
	}
	for code, n := range right {
		mailbox, _, _ := strings.Cut(code, " ")
		if n > d.times(mailbox) {
			d.complain("codes", mailbox, "a code of %s was right %d times", mailbox, n)
		}
	}
	for mailbox, n := range wrong {
		if n > d.Guesses.Limit*d.times(mailbox) {
			d.complain("codes", mailbox, "%s had %d guesses, %d are allowed", mailbox, n, d.Guesses.Limit)
		}
	}
}
