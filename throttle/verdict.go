package throttle

import "fmt"

// A Verdict is the whole answer to "may this mailbox be sent a mail?". Limit and Wait
// are about the next send, so a send that was just admitted comes with the countdown
// to the one after it.
type Verdict struct {
	// Allowed says whether this send is admitted; after Peek, whether one would be.
	Allowed bool
	// Degraded says that the limiter could not reach the history it shares with others,
	// and went by what it has itself.
	Degraded bool
	// Limit names the tier that makes the next send wait longest, the one with the
	// longer window if two wait equally long. It is empty when nothing has to wait.
	Limit string
	// Wait is how many milliseconds from Now the next send is admitted, 0 if at once:
	// time.Duration(v.Wait) * time.Millisecond.
	// Under a clock that has stepped back behind the newest send it is counted from
	// that send.
	Wait int64
	// Now is the clock the verdict was reached at, as it was read.
	Now int64
	// Delay is how many milliseconds, as in Wait, an admitted send has to be held back until
	// its turn comes. It is 0 but where a limiter lets sends queue.
	Delay int64

	clock   int64 // the moment that counts: Now, or later where the clock stepped back
	tiers   []Tier
	history History
	only    Admission // the history where it is this one and none else, as SpellOne was told
	quota   *Tier     // the one limit, where there are no tiers
	left    int       // sends that it still admits
}

// A Standing is how one tier stands. A tier with Remaining 0 has a Wait and the
// other way round.
type Standing struct {
	Tier
	Remaining int   // sends that the tier still admits
	Wait      int64 // milliseconds until it admits one more, 0 if it does now
}

// RetryAt is the moment the next send is admitted. It is Now and Wait, or later where
// the clock is behind the newest send.
func (v Verdict) RetryAt() int64 {
	if v.Wait == 0 {
		return v.Now
	}
	return v.clock + v.Wait
}

// Sent is how many sends the longest window holds, as far as the limiter keeps a history.
func (v Verdict) Sent() int {
	if len(v.tiers) == 0 {
		return 0
	}
	return len(v.sends().Within(v.tiers[len(v.tiers)-1].Window, v.clock))
}

// sends is the history that the verdict goes by.
func (v *Verdict) sends() History {
	if v.only.ID != (ID{}) {
		return History{v.only}
	}
	return v.history
}

// ForgottenAt is the moment from which the longest window holds none of the sends that the
// limiter has on record, but for the one of this reservation, which is left out. It is Now
// where there is none, and known only of a limiter that keeps a history.
func (v Verdict) ForgottenAt(but ID) (at int64, known bool) {
	if len(v.tiers) == 0 {
		return 0, false
	}
	longest := v.tiers[len(v.tiers)-1].Window
	sends := v.sends().Within(longest, v.clock)
	for i := len(sends) - 1; i >= 0; i-- {
		if sends[i].ID != but {
			return sends[i].At + longest, true
		}
	}
	return v.Now, true
}

// String is the standing for a person to read, such as "hour: 3 of 5 left".
func (s Standing) String() string {
	text := fmt.Sprintf("%s: %d of %d left", s.Name, s.Remaining, s.Limit)
	if s.Wait > 0 {
		text += fmt.Sprintf(", %d ms to wait", s.Wait)
	}
	return text
}

// Tiers returns how every tier stands, shortest window first.
func (v Verdict) Tiers() []Standing {
	return v.AppendTiers(make([]Standing, 0, max(1, len(v.tiers))))
}

// AppendTiers appends what Tiers returns, for callers that bring their own memory.
func (v Verdict) AppendTiers(to []Standing) []Standing {
	if v.quota != nil {
		return append(to, Standing{Tier: *v.quota, Remaining: v.left, Wait: v.Wait})
	}
	sends := v.sends()
	for _, tier := range v.tiers {
		used := len(sends.Within(tier.Window, v.clock))
		to = append(to, Standing{
			Tier:      tier,
			Remaining: max(0, tier.Limit-used),
			Wait:      tier.wait(sends, v.clock),
		})
	}
	return to
}
