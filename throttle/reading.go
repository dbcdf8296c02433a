package throttle

// A Reading is what a limiter with one limit, which keeps a count in place of a history,
// says of one key after what was asked: the part of a Verdict that differs from key to key.
// It is small, so that a store can hold its lock for no longer than the decision takes and
// spell the verdict afterwards: 32 bytes, which are handed on in a processor's registers.
type Reading struct {
	Answer
	Wait  int64 // milliseconds from Clock until the next send is admitted, 0 if at once; after a yes as well
	Delay int64 // milliseconds that an admitted send has to be held back
	Clock int64 // the moment that counts: now, or what is on record where that is later
}

// An Answer is whether a send is admitted, and how many more. The zero Answer is a no.
type Answer struct {
	Allowed   bool
	Remaining int32 // sends that are still admitted; with 0 there is a Wait
}

// Spell makes v, which is zero, the verdict of a limiter with this quota, taken at now. The
// verdict holds on to the quota, which must not change any more.
//
// It is spelt in place, as to copy a verdict takes as long as to come to it.
func (r Reading) Spell(v *Verdict, quota *Tier, now int64) {
	v.Allowed, v.Wait, v.Delay, v.Now = r.Allowed, r.Wait, r.Delay, now
	v.clock, v.quota, v.left = r.Clock, quota, int(r.Remaining)
	if r.Wait > 0 {
		v.Limit = quota.Name
	}
}
