package judge

import "slices"

// mails: every 200 has its email, an admission has one at most, and no email is without an
// answer that accounts for it.
func (c *checker) mails() {
	for mailbox, calls := range c.asked[Send] {
		for _, call := range calls {
			if call.Status == 200 && !slices.ContainsFunc(c.byID[call.ID], func(m Mail) bool { return m.Mailbox == mailbox }) {
				c.report("mails", mailbox, "node %d answered 200 for %s, and no relay has the email %s", call.Node, mailbox, call.ID)
			}
		}
	}
	for mailbox, mails := range c.mailsOf {
		sent := map[string]bool{}
		for _, m := range mails {
			sent[m.ID] = true
		}
		answered, silent := accounted(c.asked[Send][mailbox], func(call *Call) bool { return call.Status == 200 || call.Status == 504 })
		if n := without(sent, answered); n > silent {
			c.report("mails", mailbox, "%s was sent %d emails that no answer accounts for", mailbox, n-silent)
		}
	}
	for id, mails := range c.byID {
		if len(mails) > 1 {
			c.report("mails", mails[0].Mailbox, "the admission %s of %s has %d emails", id, mails[0].Mailbox, len(mails))
		}
	}
}

// accounted returns the admissions that answers of a sort name, and how many more there may be:
// of a call without an answer, or a key whose first call is lost.
func accounted(calls []*Call, sort func(*Call) bool) (ids map[string]bool, silent int) {
	ids = map[string]bool{}
	for _, call := range calls {
		switch {
		case call.lost() || sort(call) && call.ID == "":
			silent++
		case sort(call):
			ids[call.ID] = true
		}
	}
	return ids, silent
}

// without returns how many ids are not among others.
func without(ids, others map[string]bool) (n int) {
	for id := range ids {
		if !others[id] {
			n++
		}
	}
	return n
}

// finals: when all is over, as much is used of each tier as the answers say, and the sends on
// record are those that were charged or have emails, each once.
func (c *checker) finals() {
	for _, f := range c.Finals {
		tiers, calls := c.countedWith(&Call{For: f.For, Subject: f.Subject})
		for i, tier := range tiers {
			window, blur := tier.Window.Milliseconds(), c.blur(f.Subject)
			least := min(c.certain(calls, f.Subject, f.Span, window-blur), tier.Limit)
			most := min(c.possible(calls, f.Span, window+blur), tier.Limit)
			if used := f.Used[i]; used > most || used < least && !c.forgotten(f.Subject) {
				c.report("finals", f.Subject, "%s has used %d of %d of the tier %s, and should have used %d to %d", f.Subject, used, tier.Limit, tier.Name, least, most)
			}
		}
		if f.For == Send {
			c.onRecord(f, calls)
		}
	}
}

// possible returns how many admissions may count at the end of a run.
func (c *checker) possible(calls []*Call, at Span, window int64) int {
	ids, silent := accounted(calls, func(call *Call) bool {
		return call.charged() && at.From-call.Span.To < window && !c.isBack(call, at.From)
	})
	return len(ids) + silent
}

// onRecord compares the sends on record with the answers and the emails.
func (c *checker) onRecord(f Final, calls []*Call) {
	charged, silent := accounted(calls, (*Call).charged)
	record := map[string]bool{}
	for _, id := range f.IDs {
		if record[id] {
			c.report("finals", f.Subject, "%s is charged twice for the admission %s", f.Subject, id)
		}
		record[id] = true
	}
	if n := without(record, charged); n > silent {
		c.report("finals", f.Subject, "%s is charged for %d admissions that no answer accounts for", f.Subject, n-silent)
	}
	for _, m := range c.mailsOf[f.Subject] {
		charged[m.ID] = true
	}
	if n := without(charged, record); n > 0 && !c.forgotten(f.Subject) {
		c.report("finals", f.Subject, "%d admissions of %s were charged or have an email, and are not on record", n, f.Subject)
	}
}
