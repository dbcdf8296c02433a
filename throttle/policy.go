package throttle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Tier is a limit: at most Limit sends inside a Window. It is written name=limit/window, such as
// hour=5/1h.
type Tier struct {
	Name   string        // as in answers: a-z, then also 0-9, - and _
	Limit  int           // sends
	Window time.Duration // whole milliseconds
}

// MaxKept is the largest limit of a Policy's tier. A state holds no more sends than that, as no tier
// counts older ones. For a larger limit use a counter.
const MaxKept = 1000

const (
	maxTiers  = 16 // in a policy
	maxWindow = 3660 * 24 * time.Hour
	maxName   = 32 // characters
)

// Policy counts by a sliding log: every send inside the longest window is on record with its id
// and its millisecond.
//
//	a tier counts the sends with  at - send < window
//	it admits while               count < limit
//	it waits until                the limit-th newest send leaves its window
//
// It admits at most the limit of each tier in any window of its length, wherever that begins. One
// millisecond before a wait is over the answer is a refusal, and at its end an admission.
//
// [ParsePolicy] and [NewPolicy] make a Policy. It never changes and may be shared. The zero Policy
// has no tiers, and no limiter accepts it.
//
// The state is 14 bytes for each send, oldest first: 6 of milliseconds and 8 of id.
type Policy struct {
	tiers []Tier // shortest window first
}

// DefaultPolicy returns minute=1/60s,hour=5/1h,day=10/24h.
func DefaultPolicy() Policy {
	return Policy{tiers: []Tier{
		{Name: "minute", Limit: 1, Window: time.Minute},
		{Name: "hour", Limit: 5, Window: time.Hour},
		{Name: "day", Limit: 10, Window: 24 * time.Hour},
	}}
}

// NewPolicy checks the tiers and sorts them, shortest window first. Names and windows
// must differ, and no tier may promise more sends than a longer one allows. The error is one
// sentence that names the tier, for the person who wrote it.
func NewPolicy(tiers ...Tier) (Policy, error) {
	if len(tiers) == 0 {
		return Policy{}, fmt.Errorf("a policy needs at least one tier, such as minute=1/60s")
	}
	if len(tiers) > maxTiers {
		return Policy{}, fmt.Errorf("a policy has at most %d tiers", maxTiers)
	}
	sorted := slices.Clone(tiers)
	slices.SortStableFunc(sorted, func(a, b Tier) int { return cmp.Compare(a.Window, b.Window) })
	for i, tier := range sorted {
		if err := tier.check(MaxKept); err != nil {
			return Policy{}, err
		}
		if err := tier.checkAgainst(sorted[:i]); err != nil {
			return Policy{}, err
		}
	}
	return Policy{tiers: sorted}, nil
}

// check checks a tier whose limit may be most.
func (t Tier) check(most int) error {
	if err := checkTierName(t.Name); err != nil {
		return err
	}
	switch {
	case t.Limit < 1 || t.Limit > most:
		return fmt.Errorf("tier %s: the limit must be between 1 and %d, not %d", t.Name, most, t.Limit)
	case t.Window%time.Millisecond != 0:
		return fmt.Errorf("tier %s: the window must be whole milliseconds, not %s", t.Name, t.Window)
	case t.Window < time.Millisecond || t.Window > maxWindow:
		return fmt.Errorf("tier %s: the window must be between 1ms and %s, not %s",
			t.Name, formatWindow(maxWindow), formatWindow(t.Window))
	}
	return nil
}

// checkAgainst refuses two tiers of one name or one window, and a shorter one that a longer
// one never lets fill up.
func (t Tier) checkAgainst(shorter []Tier) error {
	for _, s := range shorter {
		switch {
		case s.Name == t.Name:
			return fmt.Errorf("tier %s: the name is used twice", t.Name)
		case s.Window == t.Window:
			return fmt.Errorf("tier %s: tier %s has the same window, %s", t.Name, s.Name, formatWindow(t.Window))
		case s.Limit > t.Limit:
			return fmt.Errorf("tier %s: %d sends in %s can never be reached while tier %s allows %d in %s",
				s.Name, s.Limit, formatWindow(s.Window), t.Name, t.Limit, formatWindow(t.Window))
		}
	}
	return nil
}

// CheckName checks a name of a tier or a rule, which answers show: it has to fit a header, a
// metric and a Redis key unquoted. The error does not repeat the name.
func CheckName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a name has at most %d characters", maxName)
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z'
		inner := c >= '0' && c <= '9' || c == '-' || c == '_'
		if !letter && (i == 0 || !inner) {
			return errors.New("a name is lower-case letters, digits, - and _, and starts with a letter")
		}
	}
	if name == "" {
		return errors.New("a name has at least one letter")
	}
	return nil
}

// checkTierName says which tier it is that has a wrong name.
func checkTierName(name string) error {
	if name == "" {
		return errors.New("a tier has no name; write it as name=limit/window")
	}
	if err := CheckName(name); err != nil {
		return fmt.Errorf("tier %s: %w", quote(name), err)
	}
	return nil
}

// Tiers returns the tiers, shortest window first. The slice is the caller's.
func (p Policy) Tiers() []Tier { return slices.Clone(p.tiers) }

// Exact implements [Algorithm].
func (p Policy) Exact() bool { return true }

// Queues implements [Algorithm].
func (p Policy) Queues() bool { return false }

// Window implements [Algorithm]: it is the longest one.
func (p Policy) Window() int64 {
	if len(p.tiers) == 0 {
		return 0
	}
	return p.tiers[len(p.tiers)-1].Window.Milliseconds()
}
