package throttle

// A Refusal is a no that holds. A no changes nothing on record: so until something else
// does, whoever asks again is refused too, by the same tier and until the same moment.
// Who keeps it beside what is on record can say no again without looking there.
type Refusal struct {
	Since int64 // the clock at which it was said; before that nothing is known
	Until int64 // when the next send is admitted
	IDs   IDs   // those on record, who would be admitted again
	Tier  uint8 // its place in the policy, if there is one
}

// Lasts reports whether a Peek at now is refused as well.
func (no Refusal) Lasts(now int64) bool { return no.Since <= now && now < no.Until }

// Holds reports whether a Take of this id at now is refused as well. If not, nothing is known.
func (no Refusal) Holds(id ID, now int64) bool { return no.Lasts(now) && !no.IDs.MayHave(id) }

// Refusal is the no of a limiter that has these on record.
func (r Reading) Refusal(ids IDs) Refusal {
	return Refusal{Since: r.Clock, Until: r.Clock + r.Wait, IDs: ids}
}

// Reading is what the limiter says again.
func (no Refusal) Reading(now int64) Reading {
	return Reading{Wait: no.Until - now, Clock: now}
}

// Refusal is the no that the verdict of a policy is. Of another it holds for no id, as that
// knows none of those on record.
func (v *Verdict) Refusal() Refusal {
	no := Refusal{Since: v.clock, Until: v.clock + v.Wait, IDs: AnyID}
	if len(v.tiers) > 0 {
		no.IDs = IDsOf(v.sends())
	}
	for i := range v.tiers {
		if v.tiers[i].Name == v.Limit {
			no.Tier = uint8(i)
		}
	}
	return no
}

// SpellAgain makes v, which is zero, what [Decide] returns of these sends while a no of this
// policy lasts. It looks at none of them.
func (p Policy) SpellAgain(v *Verdict, no Refusal, sends History, now int64) {
	v.Limit, v.Wait, v.Now = p.tiers[no.Tier].Name, no.Until-now, now
	v.clock, v.tiers, v.history = now, p.tiers, sends
}
