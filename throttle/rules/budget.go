package rules

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/throttle"
)

// Budget makes a rule count a send only until its code is right: at most the limit of the rule, or a share of what
// was verified in its window if that is more, is outstanding. The rule, whose limit the share replaces, and each of its
// overrides are a sliding-log of one limit or a sliding-window, with one window. MailboxRule, and a rule with Resends, have none.
type Budget struct {
	// Percent is the share. 0 leaves the limit as it is.
	Percent int
	// Verified counts right codes by the keys of the rule, in a window as long as its own, and refuses none. It may
	// be nil without a share.
	Verified *throttle.Limiter
}

// withLimit returns an algorithm that reads the same records, with another limit.
func withLimit(a throttle.Algorithm, limit int) (throttle.Algorithm, error) {
	switch a := a.(type) {
	case throttle.Policy:
		if tiers := a.Tiers(); len(tiers) == 1 {
			tiers[0].Limit = min(limit, throttle.MaxKept)
			return throttle.NewPolicy(tiers...)
		}
	case throttle.SlidingWindow:
		return a.WithLimit(limit), nil
	}
	return nil, errors.New("a budget has one limit, of a sliding-log or a sliding-window")
}

// widen lets the question be decided by the share of what was verified, if that is more than the limit so far. What
// is verified meanwhile would widen it further; what leaves the window meanwhile is counted once more.
func (q *question) widen(ctx context.Context, limit int) (wider bool, err error) {
	b := q.rule.Budget
	if b == nil || b.Percent == 0 {
		return false, nil
	}
	v, err := b.Verified.Peek(ctx, q.key)
	share := v.Sent * b.Percent / 100
	if err != nil || share <= limit {
		return false, err
	}
	a, err := withLimit(q.limiter.Algorithm, share)
	if err == nil {
		q.limiter = q.limiter.With(a)
	}
	return err == nil, err
}

// Unverified returns the part of a send's charges that a right code returns, as a text for Returned, and for how
// many milliseconds it counts. It is empty if there is none.
func (s *Set) Unverified(all []Charge) (text string, life int64) {
	for _, c := range all {
		if r, _ := s.Rule(c.Rule); r.Budget != nil {
			text += fmt.Sprintf("%s\t%s\t%d\t%s\n", c.Rule, c.Admission.ID, c.Admission.At, c.Key)
			life = max(life, r.Limiter.Algorithm.Window())
		}
	}
	return text, life
}

// Returned reads the charges in a text of Unverified, but for those of rules that are gone.
func (s *Set) Returned(text string) (all []Charge) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(parts) != 4 {
			continue
		}
		id, err := throttle.ParseID(parts[1])
		at, wrong := strconv.ParseInt(parts[2], 10, 64)
		if r, found := s.Rule(parts[0]); found && r.Budget != nil && errors.Join(err, wrong) == nil {
			all = append(all, Charge{Rule: r.Name, By: r.By, Key: parts[3], Admission: throttle.Admission{ID: id, At: at}})
		}
	}
	return all
}

// Verified counts one right code for each key of the charges that it returns. Release comes after it, so that no
// node finds the room of a release without the wider limit.
func (s *Set) Verified(ctx context.Context, all []Charge) (err error) {
	counted := map[string]bool{}
	for _, c := range all {
		r, _ := s.Rule(c.Rule)
		if b := r.Budget; b != nil && b.Percent > 0 && !counted[c.Rule+" "+c.Key] {
			counted[c.Rule+" "+c.Key] = true
			_, failure := b.Verified.Take(ctx, c.Key)
			err = errors.Join(err, r.wrap(failure))
		}
	}
	return err
}

// Peek reports what the rule alone would answer about a send, by the limit in force.
func (r *Rule) Peek(ctx context.Context, send Send) (throttle.Verdict, error) {
	q := question{rule: r, key: r.By.Key(send), limiter: r.LimiterFor(send), shown: true}
	q.peek(ctx)
	return q.verdict, q.err
}
