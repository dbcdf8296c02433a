package judge

// A take is one of an action that was answered with a yes, and what was asked to give it back.
type take struct {
	*Call
	back *Call // nil if nothing was
}

// mayBeBack reports whether a take may have been given back by then.
func (t take) mayBeBack(by int64) bool { return t.back != nil && t.back.Span.From <= by }

// isBack reports whether it certainly has been in the end. A node that took it alone may yet
// write it where another has given it back.
func (t take) isBack() bool {
	return t.back != nil && t.back.Released && (t.back.Node == t.Node || !t.Degraded)
}

// counts reports whether it certainly counts at a moment.
func (t take) counts(at, window int64) bool {
	return t.Span.To <= at && at-t.Span.From < window && !t.mayBeBack(at)
}

// actions: a subject has no more takes than its limit at any moment, those given back left out,
// and when all is over as many as the answers say.
func (d *docket) actions() {
	takes := d.takes()
	for subject, all := range takes {
		for _, one := range all {
			d.takeInLimit(subject, one, all)
		}
	}
	for _, s := range d.Subjects {
		d.subject(s, takes[s.Name])
	}
}

// takes are the answered ones of each subject. No two have one id, and what is given back was
// there.
func (d *docket) takes() map[string][]take {
	byID := map[string]bool{}
	all := map[string][]take{}
	for i := range d.Calls {
		c := &d.Calls[i]
		if c.For != Take || c.Status != 200 {
			continue
		}
		if byID[c.ID] {
			d.complain("actions", c.Subject, "two takes of %s have the id %s", c.Subject, c.ID)
		}
		byID[c.ID] = true
		back := d.back[c.ID]
		if back != nil && back.Status == 200 && !back.Released && !d.mayBeUnseen(c.Subject) && back.Span.To-c.Span.From < d.Action.Window.Milliseconds() {
			d.complain("actions", c.Subject, "node %d did not find the take %s of %s, %s", back.Node, c.ID, c.Subject, d.when(back.Span.From))
		}
		all[c.Subject] = append(all[c.Subject], take{c, back})
	}
	return all
}

// mayBeUnseen reports whether a node that was alone may have taken or given back what the
// others do not see, or the store may have forgotten it.
func (d *docket) mayBeUnseen(subject string) bool {
	return d.touched[subject] && (d.Terms.Alone || d.Terms.Forgets)
}

// blur is how far a window may be off: a node that was alone does not know the store's clock to
// the millisecond.
func (d *docket) blur(subject string) int64 {
	if d.Terms.Alone && d.touched[subject] {
		return drift
	}
	return 0
}

// takeInLimit: a take has its place among those that count with it. When all was well it met
// all that were answered before, by whichever node.
func (d *docket) takeInLimit(subject string, one take, all []take) {
	with, before := 0, 0
	for _, other := range all {
		if other.counts(one.Span.To, d.Action.Window.Milliseconds()-d.blur(subject)) {
			with++
			if other.Span.To < one.Span.From {
				before++
			}
		}
	}
	if most := d.Action.Limit * d.times(subject); with > most {
		d.complain("actions", subject, "%s took %d times in %d ms, %d are allowed", subject, with, d.Action.Window.Milliseconds(), most)
	}
	if before >= d.Action.Limit && !d.struck(one.Span) && !d.forgotten(subject) {
		d.complain("actions", subject, "node %d let %s take once more, which had taken %d times, %s", one.Node, subject, before, d.when(one.Span.From))
	}
}

// subject: in the end as much is used as was answered, and what nobody knows of.
func (d *docket) subject(s Subject, all []take) {
	least, most := 0, 0
	for _, one := range all {
		if one.counts(s.Span.To, d.Action.Window.Milliseconds()-d.blur(s.Name)) {
			least++
		}
		if s.Span.From-one.Span.To < d.Action.Window.Milliseconds()+d.blur(s.Name) && !one.isBack() {
			most++
		}
	}
	for i := range d.Calls {
		if c := &d.Calls[i]; c.For == Take && c.Subject == s.Name && c.lost() {
			most++
		}
	}
	least, most = min(least, d.Action.Limit), min(most, d.Action.Limit)
	if s.Used > most || s.Used < least && !d.forgotten(s.Name) {
		d.complain("standings", s.Name, "%s has used %d of %d takes, and should have used %d to %d", s.Name, s.Used, d.Action.Limit, least, most)
	}
}
