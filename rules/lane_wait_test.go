package rules_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A resend that is refused in favour of first mails waits no longer than until it would be
// one: its mailbox is a newcomer again when its last mail has left the longest window.
func TestALaneIsWaitedForUntilItIsOpen(t *testing.T) {
	s := openShop(t)
	lane := throttletest.Policy(t, "day=1/24h")
	provider := s.limiter("provider", "day=3/24h")
	set := newSet(t, rules.Options{},
		s.rule(rules.MailboxRule, rules.ByMailbox, "minute=2/60s"),
		rules.Rule{Name: "provider", By: rules.ByAll, Limiter: provider, Resends: resender{provider, lane}})
	for _, step := range []struct {
		mailbox string
		at      int64
		allowed bool
		wait    int64
	}{
		{"a@example.com", 0, true, 60_000},
		{"a@example.com", 10_000, false, 50_000},
		{"b@example.com", 20_000, true, 60_000},
		{"a@example.com", 59_999, false, 1},
		{"a@example.com", 60_000, true, 86_340_000}, // nothing is left for anybody
		{"b@example.com", 90_000, false, 86_310_000},
	} {
		s.clock.Store(start + step.at)
		if d := take(t, set, to(step.mailbox)); d.Allowed != step.allowed || d.Verdict.Wait != step.wait {
			t.Errorf("%s at %d: %v, %d ms to wait by %s, want %v, %d", step.mailbox, step.at, d.Allowed, d.Verdict.Wait, d.Rule, step.allowed, step.wait)
		}
	}
}

// Whatever rules there are: one millisecond before the wait is over the answer is still no,
// and then, if nobody else came, it is yes.
func TestTheWaitOfALaneIsExact(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := openShop(t)
		window, err := meter.NewFixedWindow(throttle.Tier{Name: "hour", Limit: 3 + random.IntN(8), Window: 3_600_000})
		if err != nil {
			t.Fatal(err)
		}
		lesser, err := window.Reserving(1 + random.IntN(window.Tier().Limit-1))
		if err != nil {
			t.Fatal(err)
		}
		ahead := []int64{0, 5000, -5000}[seed%3] // of the server that has the lane
		all := memory.New(window, memory.Options{Now: func() int64 { return s.clock.Load() + ahead }})
		set := newSet(t, rules.Options{Remote: seed%2 == 0},
			s.rule(rules.MailboxRule, rules.ByMailbox, []string{"minute=2/60s", "minute=1/60s,quarter=3/15m"}[random.IntN(2)]),
			rules.Rule{Name: "provider", By: rules.ByAll, Limiter: all, Resends: all.With(lesser)},
			s.rule("domain", rules.ByDomain, "minute=6/3m"))
		var story []string
		for range 300 {
			send := to(fmt.Sprintf("m%d@example.com", random.IntN(5)))
			d := take(t, set, send)
			now, wait := s.clock.Load(), d.Verdict.RetryAt()-d.Verdict.Now
			story = append(story, fmt.Sprintf("%d %s: %v, %d ms by %s", now-start, send.Mailbox, d.Allowed, wait, d.Rule))
			for _, look := range []struct {
				at   int64
				want bool
			}{{now + wait - 1, false}, {now + wait, true}} {
				if wait == 0 && !look.want {
					continue
				}
				s.clock.Store(look.at)
				if then, err := set.Peek(context.Background(), send); err != nil || then.Allowed != look.want {
					t.Fatalf("seed %d: %d ms later %v by %s, %v\n%s", seed, look.at-now, then.Allowed, then.Rule, err, story[max(0, len(story)-12):])
				}
			}
			s.clock.Store(now + random.Int64N(90_000))
		}
	}
}
