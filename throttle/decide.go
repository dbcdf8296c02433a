package throttle

// Decide answers whether one more send at now would be within the policy. It records
// nothing and allocates nothing: the verdict shares the history's memory. Whoever
// sends on a yes records it, with [History.With].
func Decide(p Policy, h History, now int64) (v Verdict) {
	p.Spell(&v, h, now)
	return v
}

// Spell makes v, which is zero, what [Decide] returns. It is for who says no a million times
// a second: to copy a verdict takes as long as to come to it.
func (p Policy) Spell(v *Verdict, h History, now int64) {
	p.spell(v, h, now)
	v.history = h
}

// SpellOne is Spell for a history of one send, which has a reservation. It takes no memory.
func (p Policy) SpellOne(v *Verdict, only Admission, now int64) {
	p.spell(v, History{only}, now)
	v.only = only
}

// spell keeps nothing of the history, so that whoever has one on the stack leaves it there.
func (p Policy) spell(v *Verdict, h History, now int64) {
	v.Now, v.clock, v.tiers = now, h.Clock(now), p.tiers
	for i := range p.tiers {
		tier := &p.tiers[i]
		// Tiers come shortest window first, so >= gives a tie to the longer one.
		if wait := tier.wait(h, v.clock); wait > 0 && wait >= v.Wait {
			v.Wait, v.Limit = wait, tier.Name
		}
	}
	v.Allowed = v.Wait == 0
}

// Admitted is the verdict on a send that the history already holds: it is allowed,
// and Limit and Wait say when the next one may come.
func Admitted(p Policy, h History, now int64) (v Verdict) {
	p.Spell(&v, h, now)
	v.Allowed = true
	return v
}

// wait is how long the tier stays full: until its limit-th newest send leaves the
// window.
func (t *Tier) wait(h History, clock int64) int64 {
	if len(h) < t.Limit {
		return 0
	}
	return max(0, h[len(h)-t.Limit].At+t.Window-clock)
}
