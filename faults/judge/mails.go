package judge

import "slices"

// mails: every 200 has its email, an admission has one at most, and no email is without an
// answer that accounts for it.
func (c *checker) mails() {
	for mailbox, calls := range c.asked[Send] {
		accounted, silent := map[string]bool{}, 0
		for _, call := range calls {
			if call.lost() {
				silent++
			}
			if call.Status == 200 || call.Status == 504 {
				accounted[call.ID] = true
			}
			if call.Status == 200 && !slices.ContainsFunc(c.byID[call.ID], func(m Mail) bool { return m.Mailbox == mailbox }) {
				c.report("mails", mailbox, "node %d answered 200 for %s, and no relay has the email %s", call.Node, mailbox, call.ID)
			}
		}
		for _, m := range c.mailsOf[mailbox] {
			if !accounted[m.ID] {
				accounted[m.ID] = true
				silent--
			}
		}
		if silent < 0 {
			c.report("mails", mailbox, "%s was sent %d emails that no answer accounts for", mailbox, -silent)
		}
	}
	for mailbox := range c.mailsOf {
		if c.asked[Send][mailbox] == nil {
			c.report("mails", mailbox, "%s was sent an email without a request", mailbox)
		}
	}
	for id, mails := range c.byID {
		if len(mails) > 1 {
			c.report("mails", mails[0].Mailbox, "the admission %s of %s has %d emails", id, mails[0].Mailbox, len(mails))
		}
	}
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

// possible is how many admissions may count at the end of a run.
func (c *checker) possible(calls []*Call, at Span, window int64) (n int) {
	ids := map[string]bool{}
	for _, call := range calls {
		switch {
		case call.lost() || call.charged() && call.ID == "":
			n++ // the second is of a key whose first call is lost
		case call.charged() && !ids[call.ID] && at.From-call.Span.To < window && !c.isBack(call, at.From):
			ids[call.ID] = true
			n++
		}
	}
	return n
}

func (c *checker) onRecord(f Final, calls []*Call) {
	charged, silent := map[string]bool{}, 0
	for _, call := range calls {
		switch {
		case call.lost() || call.charged() && call.ID == "":
			silent++
		case call.charged():
			charged[call.ID] = true
		}
	}
	record := map[string]bool{}
	for _, id := range f.IDs {
		if record[id] {
			c.report("finals", f.Subject, "%s is charged twice for the admission %s", f.Subject, id)
		}
		if record[id] = true; !charged[id] {
			silent--
		}
	}
	if silent < 0 {
		c.report("finals", f.Subject, "%s is charged for %d admissions that no answer accounts for", f.Subject, -silent)
	}
	for _, m := range c.mailsOf[f.Subject] {
		charged[m.ID] = true
	}
	for id := range charged {
		if !record[id] && !c.forgotten(f.Subject) {
			c.report("finals", f.Subject, "the admission %s of %s was charged or has an email, and is not on record", id, f.Subject)
		}
	}
}
