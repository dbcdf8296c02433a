package judge

import "strings"

// codes: a code that was not mailed is never right, one that was is right once, and new
// guesses are never free: a code is told to be wrong only where the guess is on all nodes'
// record.
func (d *docket) codes() {
	right, wrong := map[string]int{}, map[string]int{}
	for i := range d.Calls {
		c := &d.Calls[i]
		switch {
		case c.For != Verify:
		case c.Status == 200 && !c.Right && !d.mailedCode(c):
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
		if n > d.Guesses.Limit*d.lives(mailbox) {
			d.complain("codes", mailbox, "%s had %d guesses, %d are allowed", mailbox, n, d.Guesses.Limit)
		}
	}
	d.rightCodes()
}

// rightCodes: a code that was mailed is right, while no other can have used it up and there
// are guesses left. In a fault a node that is alone may not know of it.
func (d *docket) rightCodes() {
	for mailbox, calls := range d.asked[Verify] {
		for _, c := range calls {
			refused := c.Status == 410 || c.Status == 422 || c.Status == 429
			if !refused || !c.Right || !d.mailedCode(c) || d.usedUp(c, calls) || d.forgotten(mailbox) || d.Terms.Alone && d.struck(c.Span) {
				continue
			}
			d.complain("codes", mailbox, "node %d answered %d %s to a code that was mailed to %s, %s", c.Node, c.Status, c.Kind, mailbox, d.when(c.Span.From))
		}
	}
}

// mailedCode reports whether a relay has taken over a mail with the code.
func (d *docket) mailedCode(c *Call) bool {
	for _, m := range d.mailsOf[c.Subject] {
		if m.Code == c.Code {
			return true
		}
	}
	return false
}

// usedUp reports whether another call may have used up the code, or the guesses.
func (d *docket) usedUp(c *Call, calls []*Call) bool {
	guesses := 0
	for _, other := range calls {
		if other == c || other.Span.From > c.Span.To || !other.mayCount() {
			continue
		}
		if other.Right && (other.Status == 0 || other.Status == 200 || other.Status >= 500) {
			return true
		}
		guesses++
	}
	return guesses >= d.Guesses.Limit
}
