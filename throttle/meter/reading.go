package meter

import "github.com/mailgate/mailgate/throttle"

// A Reading is what a meter says of one key: the part of a throttle.Verdict that differs
// from key to key. It is small, so that a store can hold its lock for no longer than the
// decision takes and spell the verdict afterwards.
type Reading struct {
	Allowed   bool  // whether this send is admitted
	Remaining int   // sends that are still admitted; with 0 there is a Wait
	Wait      int64 // milliseconds from Clock until the next send is admitted, 0 if at once
	Delay     int64 // milliseconds that an admitted send has to be held back
	Clock     int64 // the moment that counts: now, or what is on record where that is later
}

// Spell makes v, which is zero, the verdict of a meter with this quota, taken at now.
func (r *Reading) Spell(v *throttle.Verdict, quota *throttle.Tier, now int64) {
	v.Count(r.Allowed, quota, r.Remaining, r.Wait, r.Delay, now, r.Clock)
}
