package rules_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// window returns a sliding window whose parts are a millisecond, so that it counts exactly.
func window(t testing.TB, limit, ms int) throttle.Algorithm {
	return must.Get(throttle.NewSlidingWindow(throttle.Tier{Name: "floor", Limit: limit, Window: time.Duration(ms) * time.Millisecond}, ms))(t)
}

// budget is a rule by visitor that counts unverified sends.
func (r *rig) budget(a throttle.Algorithm, percent, ms int) rules.Rule {
	return rules.Rule{Name: "budget", By: rules.ByClientIP, Limiter: local.New(r.store.Table("budget"), a), Budget: &rules.Budget{
		Percent: percent, Verified: local.New(r.store.Table("budget-verified"), window(r, 1_000_000, ms)),
	}}
}

// verified returns what sends were charged, as a right code does.
func verified(t testing.TB, set *rules.Set, all ...rules.Charge) {
	t.Helper()
	text, _ := set.Unverified(all)
	all = set.Returned(text)
	must.OK(t, set.Verified(ctx, all))
	_, err := set.Release(ctx, all)
	must.OK(t, err)
}

// Against a model that keeps every send and every right code and counts them anew: at most the floor, or the share
// of what was verified in the window, is outstanding.
func TestBudget_RandomHistory_AsTheModel(t *testing.T) {
	t.Parallel()
	const ms, floor = 200, 3
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		percent := []int{0, 30, 50, 100}[seed%4]
		r := newRig(t)
		algorithm := window(t, floor, ms)
		if percent == 0 && seed%8 == 0 {
			algorithm = throttletest.Policy(t, fmt.Sprintf("floor=%d/%dms", floor, ms))
		}
		set := r.set(seed%3 == 0, r.mailbox("day=1000/24h"), r.budget(algorithm, percent, ms))
		type one struct {
			at      int64
			charges []rules.Charge
		}
		var outstanding []one
		var right []int64
		inside := func(at int64) bool { return r.clock.Load()-at < ms }
		for range 300 {
			r.clock.Add(random.Int64N(12))
			var waiting []one
			for _, o := range outstanding {
				if inside(o.at) {
					waiting = append(waiting, o)
				}
			}
			outstanding = waiting
			n := 0
			for _, at := range right {
				if inside(at) {
					n++
				}
			}
			limit := max(floor, n*percent/100)
			if random.IntN(3) > 0 || len(outstanding) == 0 {
				want := len(outstanding) < limit
				if p := peek(t, set, to("a@b.example")); p.Allowed != want {
					t.Fatalf("seed %d: %d outstanding of %d: peek says %v", seed, len(outstanding), limit, p.Allowed)
				}
				d := take(t, set, to("a@b.example"))
				if d.Allowed != want || !want && (d.Rule != "budget" || d.Verdict.Tiers[0].Limit != limit) {
					t.Fatalf("seed %d: %d outstanding of %d: %+v", seed, len(outstanding), limit, d)
				}
				// The wait is over when what is outstanding by then is less than the share of what is verified by then.
				wait := int64(0)
				for full := !want; full && wait <= ms; {
					wait++
					left, proven := 0, 0
					for _, o := range outstanding {
						if r.clock.Load()+wait-o.at < ms {
							left++
						}
					}
					for _, at := range right {
						if r.clock.Load()+wait-at < ms {
							proven++
						}
					}
					full = left >= max(floor, proven*percent/100)
				}
				if !want && d.Verdict.Wait != wait {
					t.Fatalf("seed %d: %d outstanding of %d: the wait is %d, not %d", seed, len(outstanding), limit, d.Verdict.Wait, wait)
				}
				if want {
					outstanding = append(outstanding, one{r.clock.Load(), d.Charges})
				}
				continue
			}
			i := random.IntN(len(outstanding))
			verified(t, set, outstanding[i].charges...)
			outstanding = append(outstanding[:i:i], outstanding[i+1:]...)
			right = append(right, r.clock.Load())
		}
	}
}

// A right code counts once for each visitor, however many sends it returns; and what is no budget's stays charged.
func TestVerified_SeveralSends_CountOnce(t *testing.T) {
	r := newRig(t)
	b := r.budget(window(t, 9, 1000), 100, 1000)
	mailbox := r.mailbox("day=9/24h")
	set := r.set(false, mailbox, b)
	var all []rules.Charge
	for _, client := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2"} {
		send := to("a@b.example")
		send.Client = netip.MustParseAddr(client)
		all = append(all, take(t, set, send).Charges...)
	}
	verified(t, set, all...)
	for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
		if v := must.Get(b.Budget.Verified.Peek(ctx, client))(t); v.Sent != 1 || r.left(b, client) != 9 {
			t.Errorf("%s: %d verified, %d left", client, v.Sent, r.left(b, client))
		}
	}
	if n := r.left(mailbox, "a@b.example"); n != 6 {
		t.Errorf("the mailbox has %d left", n)
	}
	other := to("a@b.example")
	other.Unverifiable = true
	if d := take(t, set, other); len(d.Charges) != 1 {
		t.Errorf("a send whose code never comes back is charged %v", d.Charges)
	}
	for _, text := range []string{"", "budget", "budget\tx\t1\tkey\n", "gone\tabcdefgh\t1\tkey\n", "budget\tabcdefgh\tx\tkey\n", "mailbox\tabcdefgh\t1\tkey\n"} {
		if got := set.Returned(text); len(got) != 0 {
			t.Errorf("%q returns %v", text, got)
		}
	}
}

// Three nodes race for the last of a share. No more is admitted than one by one, and none less.
func TestBudget_ThreeNodesRace_LastOfTheShareIsOne(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	for name, algorithm := range map[string]throttle.Algorithm{"window": must.Get(throttle.NewSlidingWindow(throttle.Tier{Name: "floor", Limit: 2, Window: time.Hour}, 0))(t)} {
		t.Run(name, func(t *testing.T) {
			var nodes []*rules.Set
			for range 3 {
				client := redis.NewClient(&redis.Options{Addr: server.Addr})
				t.Cleanup(func() { _ = client.Close() })
				limiter := func(rule string, a throttle.Algorithm) *throttle.Limiter {
					return must.Get(cluster.New(client, name+":"+rule, a))(t)
				}
				count := must.Get(throttle.NewSlidingWindow(throttle.Tier{Name: "verified", Limit: 1_000_000, Window: time.Hour}, 0))(t)
				nodes = append(nodes, must.Get(rules.New(rules.Options{Remote: true},
					rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter("mailbox", throttletest.Policy(t, "hour=1000/1h"))},
					rules.Rule{Name: "budget", By: rules.ByClientIP, Limiter: limiter("budget", algorithm), Budget: &rules.Budget{Percent: 50, Verified: limiter("verified", count)}},
				))(t))
			}
			for i := range 10 { // people who sign up
				verified(t, nodes[i%3], take(t, nodes[i%3], to(fmt.Sprintf("person%d@b.example", i))).Charges...)
			}
			var admitted atomic.Pointer[rules.Decision]
			for round, want := range []int64{5, 0, 1} { // half of ten; no more; one more once one of them is verified
				if round == 2 {
					verified(t, nodes[2], admitted.Load().Charges...)
				}
				var all sync.WaitGroup
				var n atomic.Int64
				for i := range 60 {
					all.Go(func() {
						if d := take(t, nodes[i%3], to(fmt.Sprintf("stranger%d-%d@b.example", round, i))); d.Allowed {
							n.Add(1)
							admitted.Store(&d)
						}
					})
				}
				if all.Wait(); n.Load() != want {
					t.Errorf("round %d: %d admitted, want %d", round, n.Load(), want)
				}
			}
		})
	}
}

// What a solved challenge admits beyond a budget is not outstanding, and its right code widens the budget as any other.
func TestBudget_Challenge_RightCodesOfSolvedSendsCount(t *testing.T) {
	for name, algorithm := range map[string]throttle.Algorithm{"window": window(t, 1, 1000)} {
		for _, remote := range both {
			r := newRig(t)
			b := r.budget(algorithm, 100, 1000)
			b.By, b.Challenge = rules.ByAll, true
			set, _ := r.challenging(remote, "day=99/24h", b)
			stranger := take(t, set, solved("first"))
			var people []rules.Decision
			for _, token := range []string{"one", "two"} {
				if d := take(t, set, to("b@b.example")); d.Allowed || !d.Challenge {
					t.Fatalf("%s: unsolved: %+v", name, d)
				}
				people = append(people, take(t, set, solved(token)))
			}
			for _, d := range people {
				verified(t, set, d.Charges...)
			}
			if v := must.Get(b.Budget.Verified.Peek(ctx, "all"))(t); v.Sent != 2 || r.left(b, "all") != 0 {
				t.Errorf("%s: %d verified, %d left of the floor", name, v.Sent, r.left(b, "all"))
			}
			verified(t, set, stranger.Charges...)
			if r.left(b, "all") != 1 {
				t.Errorf("%s: the first is still charged", name)
			}
		}
	}
}
