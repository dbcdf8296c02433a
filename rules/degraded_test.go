package rules_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
)

// One that goes by its own history says so with each verdict.
type alone struct{ throttle.Historian }

func (a alone) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	v, err := a.Historian.Take(ctx, key, id)
	v.Degraded = true
	return v, err
}

func (a alone) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	v, err := a.Historian.Peek(ctx, key)
	v.Degraded = true
	return v, err
}

// One degraded verdict makes the decision degraded, whichever rule it is that binds.
func TestDegraded(t *testing.T) {
	for _, degraded := range []string{rules.MailboxRule, "caller", ""} {
		s := openShop(t)
		mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s")
		caller := s.rule("caller", rules.ByAPIKey, "hour=2/1h")
		switch degraded {
		case rules.MailboxRule:
			mailbox.Limiter = alone{mailbox.Limiter.(throttle.Historian)}
		case "caller":
			caller.Limiter = alone{caller.Limiter.(throttle.Historian)}
		}
		set := newSet(t, rules.Options{}, mailbox, caller)
		for _, to := range []rules.Send{to("a@example.com"), to("a@example.com"), to("b@example.com"), to("c@example.com")} {
			peeked, err := set.Peek(context.Background(), to)
			if err != nil {
				t.Fatal(err)
			}
			for what, d := range map[string]rules.Decision{"peek": peeked, "take": take(t, set, to)} {
				if want := degraded != ""; d.Degraded != want || d.Verdict.Degraded != want {
					t.Errorf("%s, degraded rule %q, allowed %v by %q: %v and %v", what, degraded, d.Allowed, d.Rule, d.Degraded, d.Verdict.Degraded)
				}
			}
		}
	}
}

// So does the verdict of a lane that is asked about the mail after a mailbox's first.
func TestADegradedLane(t *testing.T) {
	s := openShop(t)
	provider := s.limiter("provider", "day=3/24h")
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
		rules.Rule{Name: "provider", By: rules.ByAll, Limiter: provider, Resends: alone{provider}})
	if d := take(t, set, to("a@example.com")); !d.Degraded || !d.Verdict.Degraded {
		t.Errorf("by %q: %v and %v", d.Rule, d.Degraded, d.Verdict.Degraded)
	}
}
