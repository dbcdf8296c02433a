package judge

import (
	"maps"
	"slices"
)

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
		most := 1
		if c.ofDoor[id] { // where nodes are alone, or the store forgets, a repeat may be sent by another node
			most = c.times(mails[0].Mailbox)
		}
		if len(mails) > most {
			c.report("mails", mails[0].Mailbox, "the admission %s of %s has %d emails", id, mails[0].Mailbox, len(mails))
		}
	}
}

// accounted returns the admissions that answers of a sort name, and how many more there may be. Those are of a
// call without an answer, or of a key whose first call is lost. An email by SMTP has its name from the caller.
func accounted(calls []*Call, sort func(*Call) bool) (ids map[string]bool, silent int) {
	ids = map[string]bool{}
	for _, call := range calls {
		switch {
		case call.lost() && call.Door:
			ids[call.ID] = true
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

// finals: when all is over, as much is used of each tier as the answers say. The sends on record are those that
// were charged or have an email, each once.
func (c *checker) finals() {
	for _, f := range c.Finals {
		tiers, calls := c.countedWith(&Call{For: f.For, Subject: f.Subject})
		for i, tier := range tiers {
			window, blur := tier.Window.Milliseconds(), c.blur(f.Subject)
			least := min(c.certain(calls, f.Subject, f.Span, window-blur), tier.Limit)
			most := min(c.possible(f, calls, window+blur), tier.Limit)
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
func (c *checker) possible(f Final, calls []*Call, window int64) int {
	at := f.Span
	ids, silent := accounted(calls, func(call *Call) bool {
		return (call.charged() || c.keeps(call)) && at.From-call.Span.To < window && !c.isBack(call, at.From)
	})
	return len(ids) + silent + c.again(f.Subject, calls)
}

// keeps reports whether what a call was charged may not be refunded: a node was killed before it could, or the store
// has forgotten that it was.
func (c *checker) keeps(call *Call) bool {
	return call.Kind == Abandoned && c.Terms.Gone && c.faultIn(call.Span) || call.mayCount() && c.mayForget(call.Span)
}

// again is how many emails by SMTP another node may have sent and charged again. A node that is alone does not know
// what others did, and a store not what it forgot.
func (c *checker) again(mailbox string, calls []*Call) int {
	if !c.touched[mailbox] || !c.Terms.Alone && !c.Terms.Forgets {
		return 0
	}
	ids := map[string]bool{}
	for _, call := range calls {
		if call.Door && call.Replayed {
			ids[call.ID] = true
		}
	}
	return len(ids)
}

// submissions is how many emails by SMTP a mailbox may be charged for. The record names them otherwise.
type submissions struct{ least, most int }

func (c *checker) submitted(mailbox string, calls []*Call) submissions {
	most, least := map[string]bool{}, map[string]bool{}
	for _, call := range calls {
		if call.Door && call.charged() {
			least[call.ID] = true
		}
		if call.Door && (call.charged() || call.lost() || c.keeps(call)) {
			most[call.ID] = true
		}
	}
	for _, m := range c.mailsOf[mailbox] {
		if c.ofDoor[m.ID] {
			least[m.ID] = true
		}
	}
	return submissions{len(least), len(most) + c.again(mailbox, calls)}
}

// onRecord compares the sends on record with the answers and the emails.
func (c *checker) onRecord(f Final, calls []*Call) {
	charged, silent := accounted(calls, func(call *Call) bool { return !call.Door && (call.charged() || c.keeps(call)) })
	by := c.submitted(f.Subject, calls)
	record := map[string]bool{}
	for _, id := range f.IDs {
		if record[id] {
			c.report("finals", f.Subject, "%s is charged twice for the admission %s", f.Subject, id)
		}
		record[id] = true
	}
	maps.DeleteFunc(charged, func(id string, _ bool) bool { return c.ofDoor[id] })
	n := without(record, charged)
	if n > silent+by.most {
		c.report("finals", f.Subject, "%s is charged for %d admissions that no answer accounts for", f.Subject, n-silent-by.most)
	}
	if n < by.least && !c.forgotten(f.Subject) {
		c.report("finals", f.Subject, "%d emails to %s by SMTP were charged or sent, and %d are on record", by.least, f.Subject, n)
	}
	for _, m := range c.mailsOf[f.Subject] {
		if !c.ofDoor[m.ID] {
			charged[m.ID] = true
		}
	}
	if n := without(charged, record); n > 0 && !c.forgotten(f.Subject) {
		c.report("finals", f.Subject, "%d admissions of %s were charged or have an email, and are not on record", n, f.Subject)
	}
}
