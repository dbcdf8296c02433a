package judge

import "strings"

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
