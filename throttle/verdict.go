package throttle

import "time"

// Verdict is the answer of a limiter. Limit and Wait are about the next send, so an admitted
// send comes with the countdown to the one after it.
type Verdict struct {
	// Allowed reports whether this send is admitted; after Peek, whether one would be.
	Allowed bool
	// Degraded reports that the limiter could not reach the records it shares with other
	// nodes and decided by its own.
	Degraded bool
	// Limit names the tier that makes the next send wait longest, the one with the longer
	// window if two wait equally long. It is empty when nothing has to wait.
	Limit string
	// Wait is how many milliseconds from Now the next send is admitted, 0 if at once. If the
	// clock has stepped back, it counts from the latest moment on record.
	Wait int64
	// RetryAt is the moment the next send is admitted: Now+Wait, or later if the clock has
	// stepped back.
	RetryAt int64
	// Now is the limiter's clock when it decided. At is the moment that counted: Now, or
	// the latest moment on record if that is later. An admitted send is on record at At; for an
	// id that was on record already, At is its first admission.
	Now, At int64
	// Admission is what Take has recorded, for Release; after a refusal and a Peek it is zero.
	Admission Admission
	// Delay is how many milliseconds an admitted send has to be held back: 0 except where
	// a LeakyBucket queues sends.
	Delay int64
	// Sent is how many sends count, including one just admitted: with a Policy, those in its
	// longest window. Newest is the moment of the newest of them, and 0 with a counter.
	Sent   int
	Newest int64
	// Tiers is the state of every tier, shortest window first; a counter has one.
	Tiers []TierState
}

// TierState is the state of one tier after a decision.
type TierState struct {
	Tier
	Remaining int   // sends that the tier still admits now
	Wait      int64 // milliseconds until it admits one more; 0 if it does now
	Refill    int64 // milliseconds until Remaining grows; 0 if the whole limit remains
}

// RetryAfter returns how long it is from Now to RetryAt.
func (v Verdict) RetryAfter() time.Duration { return time.Duration(v.RetryAt-v.Now) * time.Millisecond }

// Remaining returns how many sends all tiers still admit now.
func (v Verdict) Remaining() int {
	if len(v.Tiers) == 0 {
		return 0
	}
	least := v.Tiers[0].Remaining
	for _, t := range v.Tiers[1:] {
		least = min(least, t.Remaining)
	}
	return least
}
