package rules_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func solved(token string) rules.Send {
	s := to("a@b.example")
	s.Solved = token
	return s
}

// challenging is a set with a rule that challenges, and the limiter of tokens.
func (r *rig) challenging(remote bool, mailbox string, others ...rules.Rule) (*rules.Set, rules.Rule) {
	visitor, tokens := r.exact("visitor", rules.ByClientIP, "hour=1/1h"), r.exact("tokens", rules.ByAll, "token=1/20m")
	visitor.Challenge = true
	return must.Get(rules.New(rules.Options{Remote: remote, Tokens: tokens.Limiter}, append([]rules.Rule{r.mailbox(mailbox), visitor}, others...)...))(r), tokens
}

// A rule with a challenge refuses what is unsolved. A solved challenge admits one send, and is back after a refund.
func TestTake_Challenge_TokenOnce(t *testing.T) {
	for _, remote := range both {
		r := newRig(t)
		set, _ := r.challenging(remote, "hour=9/1h")
		first := take(t, set, to("a@b.example"))
		if !first.Allowed || first.Challenge || first.Rule != "" {
			t.Errorf("the first: %+v", first)
		}
		for name, look := range map[string]rules.Decision{"a send": take(t, set, to("a@b.example")), "a look": peek(t, set, solved("one"))} {
			if look.Allowed || !look.Challenge || look.Rule != "visitor" || look.Verdict.RetryAt-look.Verdict.Now != 3_600_000 || len(look.Charges) > 0 {
				t.Errorf("%s: %+v", name, look)
			}
		}
		d := take(t, set, solved("one"))
		if !d.Allowed || d.Challenge || d.Rule != "" || len(d.Shadow)+len(d.Refusals) > 0 || len(d.Charges) != 2 {
			t.Errorf("solved: %+v", d)
		}
		if d := take(t, set, solved("one")); d.Allowed || !d.Challenge || d.Rule != "visitor" || len(d.Charges) > 0 {
			t.Errorf("replayed: %+v", d)
		}
		if failed, err := set.Release(ctx, d.Charges); err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
		if d := take(t, set, solved("one")); !d.Allowed || d.Mailbox.Sent != 2 {
			t.Errorf("after the refund: %+v", d)
		}
		if d := take(t, set, solved("other")); !d.Allowed || d.Mailbox.Sent != 3 {
			t.Errorf("another: %+v", d)
		}
	}
}

// A refusal that no challenge lifts spends no token, and comes before the challenge.
func TestTake_ChallengeBesideALimit_TheLimitRefuses(t *testing.T) {
	for _, remote := range both {
		r := newRig(t)
		set, tokens := r.challenging(remote, "minute=1/60s")
		take(t, set, to("a@b.example"))
		for _, token := range []string{"", "one"} {
			if d := take(t, set, solved(token)); d.Allowed || d.Challenge || d.Rule != rules.MailboxRule || d.Verdict.RetryAt-d.Verdict.Now != 60_000 {
				t.Errorf("%q: %+v", token, d)
			}
		}
		if r.left(tokens, "one") != 1 {
			t.Error("a refusal has spent the token")
		}
	}
}

// A solved send counts while the rule has quota left; a spent token is none where no rule challenges.
func TestTake_SolvedWithQuotaLeft_IsCharged(t *testing.T) {
	r := newRig(t)
	set, _ := r.challenging(false, "hour=9/1h")
	if d := take(t, set, solved("one")); !d.Allowed || len(d.Charges) != 3 {
		t.Errorf("%+v", d)
	}
	if d := take(t, set, to("c@b.example")); !d.Challenge {
		t.Errorf("the solved send was not counted: %+v", d)
	}
	r.clock.Add(3_600_000)
	set, _ = r.challenging(false, "hour=9/1h")
	take(t, set, solved("two"))
	r.clock.Add(1_199_999)
	if d := take(t, set, solved("two")); !d.Challenge {
		t.Errorf("%+v", d)
	}
	other := solved("two")
	other.Client = other.Client.Next()
	if d := take(t, set, other); !d.Allowed || len(d.Charges) != 2 {
		t.Errorf("a spent token without need: %+v", d)
	}
}

// A shadow reports only, a rule that fails is an error also for a solved send, and a set without tokens has none
// solved.
func TestTake_Challenge_ShadowFaultsAndNoTokens(t *testing.T) {
	r := newRig(t)
	shadow := r.exact("shadow", rules.ByAll, "hour=1/1h")
	shadow.Challenge, shadow.Shadow = true, true
	set, _ := r.challenging(false, "hour=9/1h", shadow)
	take(t, set, to("a@b.example"))
	if d := take(t, set, solved("one")); !d.Allowed || len(d.Shadow) != 1 || d.Shadow[0].Rule != "shadow" {
		t.Errorf("%+v", d)
	}
	failing := r.exact("failing", rules.ByClientIP, "hour=1/1h")
	failing.Challenge = true
	fault(&failing.Limiter, "peek")
	set, tokens := r.challenging(false, "hour=9/1h", failing)
	if d, err := set.Take(ctx, solved("two"), throttle.NewID()); err == nil || r.left(tokens, "two") != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	visitor := r.exact("visitor", rules.ByClientIP, "hour=1/1h")
	visitor.Challenge = true
	if d := take(t, r.set(false, r.mailbox("hour=9/1h"), visitor), solved("three")); d.Allowed || !d.Challenge {
		t.Errorf("without tokens: %+v", d)
	}
}

// One token and many sends of two nodes at the same moment: one of them is admitted by it.
func TestTake_OneTokenOnTwoNodes_AdmitsOne(t *testing.T) {
	t.Parallel()
	addr := redistest.Alone(t).Addr
	node := func() *rules.Set {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		limiter := func(name, tiers string) *throttle.Limiter {
			return must.Get(cluster.New(client, "test:"+name, throttletest.Policy(t, tiers)))(t)
		}
		return must.Get(rules.New(rules.Options{Remote: true, Tokens: limiter("tokens", "token=1/20m")},
			rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter("mailbox", "hour=1000/1h")},
			rules.Rule{Name: "visitor", By: rules.ByClientIP, Limiter: limiter("visitor", "hour=1/1h"), Challenge: true}))(t)
	}
	nodes := []*rules.Set{node(), node()}
	take(t, nodes[0], to("a@b.example"))
	for _, token := range []string{"one", "two", "three"} {
		var admitted atomic.Int32
		var all sync.WaitGroup
		for _, set := range slices.Repeat(nodes, 8) {
			all.Go(func() {
				if d := take(t, set, solved(token)); d.Allowed {
					admitted.Add(1)
				} else if !d.Challenge {
					t.Errorf("%+v", d)
				}
			})
		}
		all.Wait()
		if admitted.Load() != 1 {
			t.Errorf("%d sends were admitted by one token", admitted.Load())
		}
	}
	if d := peek(t, nodes[1], to("a@b.example")); d.Mailbox.Sent != 4 {
		t.Errorf("%d sends are charged, not 4", d.Mailbox.Sent)
	}
}
