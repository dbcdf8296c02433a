package judge

// standings: a mailbox is charged for what was answered as charged and for what was
// mailed, each once, and for nothing that was given back.
func (d *docket) standings() {
	for _, s := range d.Standings {
		charged, silent := map[string]bool{}, 0
		for _, c := range d.asked[Send][s.Mailbox] {
			switch {
			case c.lost() || c.charged() && c.ID == "":
				silent++ // the second is of a key: nobody knows what the first call did
			case c.charged():
				charged[c.ID] = true
			}
		}
		d.used(s, len(charged), silent)
		d.onRecord(s, charged, silent)
	}
}

// used: the tiers are as full as the answers say.
func (d *docket) used(s Standing, charged, silent int) {
	for i, tier := range d.Tiers {
		least, most := min(charged, tier.Limit), min(charged+silent, tier.Limit)
		if used := s.Used[i]; used > most || (used < least && !d.forgotten(s.Mailbox)) {
			d.complain("standings", s.Mailbox, "%s has used %d of %d of the tier %s; %d were charged, of %d nobody knows",
				s.Mailbox, used, tier.Limit, tier.Name, charged, silent)
		}
	}
}

// onRecord: the admissions on record are those that were charged, and have the mails.
func (d *docket) onRecord(s Standing, charged map[string]bool, silent int) {
	record := map[string]bool{}
	for _, id := range s.IDs {
		if record[id] {
			d.complain("standings", s.Mailbox, "%s is charged twice for the admission %s", s.Mailbox, id)
		}
		if record[id] = true; !charged[id] {
			silent--
		}
	}
	if silent < 0 {
		d.complain("standings", s.Mailbox, "%s is charged for %d admissions that no answer accounts for", s.Mailbox, -silent)
	}
	if d.forgotten(s.Mailbox) {
		return
	}
	for id := range charged {
		if !record[id] {
			d.complain("standings", s.Mailbox, "%s was charged for the admission %s, which is not on record", s.Mailbox, id)
		}
	}
	for _, m := range d.mailsOf[s.Mailbox] {
		if !record[m.ID] && !charged[m.ID] {
			d.complain("standings", s.Mailbox, "%s was sent the mail %s, and its admission is not on record", s.Mailbox, m.ID)
		}
	}
}
