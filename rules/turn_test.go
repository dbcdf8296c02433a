package rules_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Many sends to one mailbox, of which one may go, take one turn in the queue and not all.
func TestTheRefusedTakeNoTurns(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		pace := s.queue(14)
		set := newSet(t, rules.Options{Remote: remote},
			rules.Rule{Name: "pace", By: rules.ByAll, Limiter: pace, Queues: true},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"))
		if n := atOnce(t, set, 64); n != 1 {
			t.Fatalf("%d sent to one mailbox", n)
		}
		v, err := pace.Peek(context.Background(), "all")
		if err != nil || v.Tiers()[0].Remaining != 50 {
			t.Errorf("remote %v: %v, %v; want 50 of 51 left", remote, v.Tiers(), err)
		}
	}
}

// A turn in a queue is asked for when nobody else can refuse any more.
func TestTurnsAreTakenLast(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		pace := &counted{Limiter: s.queue(14)}
		mailbox := s.limiter("mailbox", "minute=1/60s")
		set := newSet(t, rules.Options{Remote: remote},
			rules.Rule{Name: "pace", By: rules.ByAll, Limiter: pace, Queues: true},
			rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: &snatched{Historian: mailbox, t: t}})
		if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != rules.MailboxRule || pace.takes != 0 {
			t.Errorf("remote %v: %v by %s, %d turns taken", remote, d.Allowed, d.Rule, pace.takes)
		}
	}
}

// Of two queues the one of all sends is charged when the other has said yes, however they are
// written down and whichever of them somebody else was faster in.
func TestAQueueThatRefusesCostsTheWiderNoTurn(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, widest := range []int{0, 1, 2} {
			s := openShop(t)
			pace := &counted{Limiter: s.queue(14)}
			all := slices.Insert([]rules.Rule{
				{Name: "domain", By: rules.ByDomain, Limiter: &contested{Limiter: s.queueOf(14, 0), t: t}, Queues: true},
				s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
			}, widest, rules.Rule{Name: "pace", By: rules.ByAll, Limiter: pace, Queues: true})
			d := take(t, newSet(t, rules.Options{Remote: remote}, all...), to("a@b.example"))
			if d.Allowed || d.Rule != "domain" || pace.takes != 0 {
				t.Errorf("remote %v, pace at %d: %v by %s, %d turns taken", remote, widest, d.Allowed, d.Rule, pace.takes)
			}
		}
	}
}

// Many sends to one domain, whose queue has room for a few, take as few turns in the queue of all.
func TestTheRefusedOfADomainTakeNoTurns(t *testing.T) {
	const many = 40
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		pace, domain := s.queue(14), &crowded{Limiter: s.queueOf(14, 3), t: t}
		domain.looking.Add(many)
		domain.taking.Add(many)
		set := newSet(t, rules.Options{Remote: remote},
			rules.Rule{Name: "pace", By: rules.ByAll, Limiter: pace, Queues: true},
			rules.Rule{Name: "domain", By: rules.ByDomain, Limiter: domain, Queues: true},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=40/60s"))
		if n := atOnce(t, set, many); n != 4 {
			t.Fatalf("%d sent to one domain", n)
		}
		if v, err := pace.Peek(context.Background(), "all"); err != nil || v.Tiers()[0].Remaining != 47 {
			t.Errorf("remote %v: %v, %v; want 47 of 51 left", remote, v.Tiers(), err)
		}
	}
}

// A crowded limiter is charged when all have looked at it, and for none before all have come.
type crowded struct {
	throttle.Limiter
	looking, taking sync.WaitGroup
	t               *testing.T
}

func (c *crowded) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	meet(c.t, &c.looking)
	return c.Limiter.Peek(ctx, key)
}

func (c *crowded) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	meet(c.t, &c.taking)
	return c.Limiter.Take(ctx, key, id)
}

// A queue in the shadow refuses nobody, so it is charged when none can refuse any more.
func TestAShadowsTurnIsTakenLast(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		trial := &counted{Limiter: s.queue(14)}
		set := newSet(t, rules.Options{Remote: remote},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
			rules.Rule{Name: "trial", By: rules.ByDomain, Limiter: trial, Queues: true, Shadow: true},
			rules.Rule{Name: "pace", By: rules.ByAll, Limiter: &contested{Limiter: s.queueOf(14, 0), t: t}, Queues: true})
		if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != "pace" || trial.takes != 0 {
			t.Errorf("remote %v: %v by %s, %d turns taken", remote, d.Allowed, d.Rule, trial.takes)
		}
	}
}

// Where two queues filled up since they were looked at, the longer wait is told.
func TestTheWaitForTwoQueues(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, limits := range [][]int{{10, 4}, {4, 10}} {
			s := openShop(t)
			set := newSet(t, rules.Options{Remote: remote},
				s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
				rules.Rule{Name: "pace", By: rules.ByAll, Limiter: &contested{Limiter: s.queueOf(limits[0], 0), t: t}, Queues: true},
				rules.Rule{Name: "domain", By: rules.ByDomain, Limiter: &contested{Limiter: s.queueOf(limits[1], 0), t: t}, Queues: true})
			if d := take(t, set, to("a@b.example")); d.Allowed || d.Verdict.Wait != 250 || len(d.Refusals) != 2 {
				t.Errorf("remote %v, %v a second: %v, %d ms by %s, %d refuse", remote, limits, d.Allowed, d.Verdict.Wait, d.Rule, len(d.Refusals))
			}
		}
	}
}

// A no stays one where the place that was missing is free again before the answer.
func TestARefusalOutlivesItsReason(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		pace := &counted{Limiter: s.queue(14)}
		set := newSet(t, rules.Options{Remote: remote},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
			rules.Rule{Name: "pace", By: rules.ByAll, Limiter: pace, Queues: true},
			rules.Rule{Name: "domain", By: rules.ByDomain, Limiter: &brieflyFull{s.queueOf(14, 0)}, Queues: true})
		if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != "domain" || pace.takes != 0 {
			t.Errorf("remote %v: %v by %s, %d turns taken", remote, d.Allowed, d.Rule, pace.takes)
		}
	}
}

// A limiter briefly full is so whenever it is charged.
type brieflyFull struct{ throttle.Limiter }

func (b *brieflyFull) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	other := throttle.NewID()
	_, err := b.Limiter.Take(ctx, key, other)
	v, taken := b.Limiter.Take(ctx, key, id)
	_, released := b.Limiter.Release(ctx, key, other)
	return v, errors.Join(err, taken, released)
}

// A queue that fails when it would not even be charged any more is no failure of the send.
func TestARefusalOutlivesAQueueThatFails(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		set := newSet(t, rules.Options{Remote: remote},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
			rules.Rule{Name: "pace", By: rules.ByAll, Limiter: &seenOnce{Limiter: s.queue(14)}, Queues: true},
			rules.Rule{Name: "domain", By: rules.ByDomain, Limiter: &contested{Limiter: s.queueOf(4, 0), t: t}, Queues: true})
		if d := take(t, set, to("a@b.example")); d.Allowed || d.Owed || d.Rule != "domain" || d.Verdict.Wait != 250 || len(d.Refusals) != 1 {
			t.Errorf("remote %v: %v, owed %v, %d ms by %s, %d refuse", remote, d.Allowed, d.Owed, d.Verdict.Wait, d.Rule, len(d.Refusals))
		}
	}
}

// A limiter seen once fails when it is looked at again.
type seenOnce struct {
	throttle.Limiter
	seen bool
}

func (s *seenOnce) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if s.seen {
		return throttle.Verdict{}, errors.New("failed")
	}
	s.seen = true
	return s.Limiter.Peek(ctx, key)
}

// A contested limiter is charged for another's send right after it was looked at.
type contested struct {
	throttle.Limiter
	t testing.TB
}

func (c *contested) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	v, err := c.Limiter.Peek(ctx, key)
	if _, err := c.Limiter.Take(ctx, key, throttle.NewID()); err != nil {
		c.t.Error(err)
	}
	return v, err
}

// A counted limiter counts how often it is charged, or asked to be.
type counted struct {
	throttle.Limiter
	takes int
}

func (c *counted) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	c.takes++
	return c.Limiter.Take(ctx, key, id)
}

// queue is a queue from which so many leave in a second, with room for all there are.
func (s *shop) queue(limit int) throttle.Limiter {
	s.t.Helper()
	return s.queueOf(limit, 50)
}

// queueOf is a queue from which so many leave in a second, and in which so many may wait.
func (s *shop) queueOf(limit, waiting int) throttle.Limiter {
	s.t.Helper()
	bucket, err := meter.NewLeakyBucket(throttle.Tier{Name: "second", Limit: limit, Window: 1000}, waiting)
	if err != nil {
		s.t.Fatal(err)
	}
	return memory.New(bucket, memory.Options{Now: s.clock.Load})
}

// Of two queues the longer one is waited for, in whichever order they are.
func TestTheLongestDelay(t *testing.T) {
	for _, limits := range [][]int{{10, 4}, {4, 10}} {
		s := openShop(t)
		all := []rules.Rule{s.rule(rules.MailboxRule, rules.ByMailbox, "minute=3/60s")}
		for i, limit := range limits {
			all = append(all, rules.Rule{Name: string(rune('a' + i)), By: rules.ByAll, Limiter: s.queue(limit), Queues: true})
		}
		shadow := rules.Rule{Name: "c", By: rules.ByAll, Limiter: s.queue(1), Queues: true, Shadow: true}
		set := newSet(t, rules.Options{}, append(all, shadow)...)
		for _, want := range []int64{0, 250, 500} {
			if d := take(t, set, to("a@b.example")); !d.Allowed || d.Delay != want {
				t.Errorf("%v a second: %v, in %d ms, want %d", limits, d.Allowed, d.Delay, want)
			}
		}
		if d := take(t, set, to("a@b.example")); d.Allowed || d.Delay != 0 {
			t.Errorf("%v, in %d ms", d.Allowed, d.Delay)
		}
	}
}

// Sends that come at once to a mailbox that had none are one first mail, and resends.
func TestOneOfManyIsTheFirst(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		window, err := meter.NewFixedWindow(throttle.Tier{Name: "day", Limit: 40, Window: 86_400_000})
		if err != nil {
			t.Fatal(err)
		}
		lesser, err := window.Reserving(20)
		if err != nil {
			t.Fatal(err)
		}
		all := memory.New(window, memory.Options{Now: s.clock.Load})
		set := newSet(t, rules.Options{Remote: remote},
			rules.Rule{Name: "provider", By: rules.ByAll, Limiter: all, Resends: all.With(lesser)},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=30/60s"))
		if n := atOnce(t, set, 64); n != 20 && n != 21 {
			t.Errorf("remote %v: %d sent to one mailbox, want the 20 that are for all, and perhaps the first beyond them", remote, n)
		}
		for i := range 19 {
			if d := take(t, set, to(string(rune('b'+i))+"@c.example")); !d.Allowed {
				t.Errorf("remote %v: newcomer %d was refused by %s", remote, i, d.Rule)
			}
		}
	}
}

// What is kept for first mails is not for those of which nobody knows whether they are
// first, nor for one that was when it was asked about and is not when it is charged.
func TestTheRestIsForCertainFirstMails(t *testing.T) {
	failed := errors.New("failed")
	for name, mailbox := range map[string]func(throttle.Historian) throttle.Historian{
		"peek fails": func(h throttle.Historian) throttle.Historian { return &broken{Historian: h, peek: failed} },
		"take fails": func(h throttle.Historian) throttle.Historian { return &broken{Historian: h, take: failed} },
		"snatched":   func(h throttle.Historian) throttle.Historian { return &snatched{Historian: h, t: t} },
	} {
		s := openShop(t)
		all := s.limiter("provider", "day=3/24h")
		lesser := throttletest.Policy(t, "day=2/24h")
		inShadow := s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s")
		inShadow.Shadow = true
		inShadow.Limiter = mailbox(inShadow.Limiter.(throttle.Historian))
		set := newSet(t, rules.Options{}, inShadow,
			rules.Rule{Name: "provider", By: rules.ByAll, Limiter: all, Resends: resender{all, lesser}})
		for i, to := range []rules.Send{to("a@b.example"), to("c@b.example"), to("d@b.example")} {
			if d := take(t, set, to); d.Allowed != (i < 2) {
				t.Errorf("%s: send %d: %v by %s", name, i, d.Allowed, d.Rule)
			}
		}
	}
}

// Two quotas that are kept far away are asked about a resend at once: by Take, by Peek, and
// after a first mail by Take about the next.
func TestLanesAreAskedAtOnce(t *testing.T) {
	s := openShop(t)
	lesser := throttletest.Policy(t, "day=20/24h")
	var looking *sync.WaitGroup
	meet := func() { looking = new(sync.WaitGroup); looking.Add(2) }
	all := []rules.Rule{s.rule(rules.MailboxRule, rules.ByMailbox, "minute=30/60s")}
	for _, name := range []string{"provider", "backup"} {
		quota := s.limiter(name, "day=40/24h")
		lane := &meeting{Limiter: resender{quota, lesser}, looking: &looking, t: t}
		all = append(all, rules.Rule{Name: name, By: rules.ByAll, Limiter: quota, Resends: lane})
	}
	set := newSet(t, rules.Options{Remote: true}, all...)
	for _, ask := range []string{"first", "resend"} {
		meet()
		if d := take(t, set, to("a@b.example")); !d.Allowed {
			t.Errorf("%s: refused by %s", ask, d.Rule)
		}
	}
	meet()
	if d, err := set.Peek(context.Background(), to("a@b.example")); err != nil || !d.Allowed {
		t.Errorf("refused by %s, %v", d.Rule, err)
	}
}

// A meeting is a limiter that is looked at only when all others are that are looked at.
type meeting struct {
	throttle.Limiter
	looking **sync.WaitGroup
	t       *testing.T
}

func (m *meeting) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	meet(m.t, *m.looking)
	return m.Limiter.Peek(ctx, key)
}

// meet waits until all have come.
func meet(t *testing.T, all *sync.WaitGroup) {
	all.Done()
	met := make(chan struct{})
	go func() { all.Wait(); close(met) }()
	select {
	case <-met:
	case <-time.After(10 * time.Second):
		t.Error("the others are asked later")
	}
}

// atOnce is how many of so many sends to one mailbox go, that all come at once.
func atOnce(t *testing.T, set *rules.Set, many int) int64 {
	var admitted atomic.Int64
	var racers sync.WaitGroup
	for range many {
		racers.Go(func() {
			if take(t, set, to("a@b.example")).Allowed {
				admitted.Add(1)
			}
		})
	}
	racers.Wait()
	return admitted.Load()
}
