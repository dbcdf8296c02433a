package rules

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/throttle"
)

// Budget makes a rule count a send only until its code is right. At most the limit of the rule is outstanding, or a
// share of what was verified in its window if that is more. The rule and each of its overrides have one window.
// MailboxRule and a rule with Resends have no Budget.
type Budget struct {
	// Percent is the share. 0 leaves the limit as it is. With a share the rule is a sliding-window, as a sliding-log
	// keeps no more than throttle.MaxKept sends.
	Percent int
	// Verified counts right codes by the keys of the rule, in a window as long as its own, and refuses none. It may
	// be nil without a share.
	Verified *throttle.Limiter
}

// widens reports whether the limit of the rule may be a share of what was verified.
func (r *Rule) widens() bool { return r.Budget != nil && r.Budget.Percent > 0 }

// widen lets the question be decided by the share of what was verified, if that is more than the limit so far. What
// is verified meanwhile would widen it further; what leaves the window meanwhile is counted once more.
func (q *question) widen(ctx context.Context) (wider bool, err error) {
	b := q.rule.Budget
	if !q.rule.widens() {
		return false, nil
	}
	if q.verified, err = b.Verified.Look(ctx, q.key); err != nil {
		return false, err
	}
	limit, share := q.limiter.Algorithm.(throttle.SlidingWindow), b.share(q.verified, q.verified.Now)
	if share <= limit.Tier().Limit {
		return false, nil
	}
	q.floor, q.limiter = limit, q.limiter.With(limit.WithLimit(share))
	return true, nil
}

// share is how many sends may be outstanding at a time, by what was verified.
func (b *Budget) share(verified throttle.Reply, at int64) int {
	return b.Verified.Algorithm.Peek(verified.State, at).Sent * b.Percent / 100
}

// waitAsShare lengthens the wait for a share: right codes leave the window as well, so the limit is less by then.
func (q *question) waitAsShare(v *throttle.Verdict, r throttle.Reply) {
	for at := v.RetryAt; v.Wait > 0; {
		limit := max(q.floor.Tier().Limit, q.rule.Budget.share(q.verified, q.verified.Now+at-r.Now))
		then := q.floor.WithLimit(limit).Peek(r.State, at)
		if then.Allowed {
			v.Wait += at - v.RetryAt
			v.RetryAt, v.Tiers[0].Wait, v.Tiers[0].Refill = at, v.Wait, v.Wait
			return
		}
		at = then.RetryAt
	}
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
		if r.widens() && !counted[c.Rule+" "+c.Key] {
			counted[c.Rule+" "+c.Key] = true
			_, failure := r.Budget.Verified.Take(ctx, c.Key)
			err = errors.Join(err, r.wrap(failure))
		}
	}
	return err
}

// Peek reports what the rule alone would answer about a send, by the limit in force.
func (r *Rule) Peek(ctx context.Context, send Send) (throttle.Verdict, error) {
	q := question{rule: r, key: r.By.Key(send), limiter: r.limiterFor(send), shown: true}
	q.peek(ctx)
	return q.verdict, q.err
}
