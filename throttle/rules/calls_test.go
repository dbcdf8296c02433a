package rules_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
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

// visitor is a rule like the built-in client-ip.
func (r *rig) visitor(limit int) rules.Rule {
	a := must.Get(throttle.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: limit, Window: time.Minute}, 0))(r)
	return rules.Rule{Name: "visitor", By: rules.ByClientIP, Limiter: local.New(r.store.Table("visitor"), a)}
}

// calls notes the steps that homes are asked for.
type calls struct {
	mu  sync.Mutex
	all []string
}

func (c *calls) of(l **throttle.Limiter, name string) *throttletest.Faulty {
	f := fault(l)
	f.On(func(_ context.Context, event, _ string) error {
		if event == "take" || event == "peek" || event == "release" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.all = append(c.all, event+" "+name)
		}
		return nil
	})
	return f
}

// since returns the steps since the last call, sorted.
func (c *calls) since() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.all)
	text := strings.Join(c.all, ", ")
	c.all = nil
	return text
}

// An admitted send asks each rule once. A refusal that was to be expected is told by a look at each and writes nothing;
// one that was not is expected from then on.
func TestTake_StoreCalls_OneForEachRule(t *testing.T) {
	const asked, looked, both2 = "take mailbox, take visitor", "peek mailbox, peek visitor", "peek mailbox, peek visitor, take mailbox, take visitor"
	for _, remote := range both {
		r := newRig(t)
		var c calls
		mailbox, visitor := r.mailbox("minute=1/60s,hour=5/1h"), r.visitor(2)
		c.of(&mailbox.Limiter, "mailbox")
		c.of(&visitor.Limiter, "visitor")
		set := r.set(remote, mailbox, visitor)
		from := func(mailbox, client string) rules.Send {
			send := to(mailbox + "@b.example")
			send.Client = netip.MustParseAddr(client)
			return send
		}
		surprise := "peek visitor, take mailbox" // the first that refuses ends the charging
		if remote {
			surprise = "release visitor, take mailbox, take visitor"
		}
		must.Get(mailbox.Limiter.Take(ctx, "z@b.example"))(t) // by another node
		c.since()
		for i, step := range []struct {
			mailbox, client, by, want string
			after                     int64
		}{
			{"a", "192.0.2.1", "", asked, 0},
			{"b", "192.0.2.1", "", asked, 0},
			{"a", "192.0.2.2", "mailbox", looked, 0},
			{"c", "192.0.2.1", "visitor", looked, 0},
			{"d", "192.0.2.2", "", asked, 0},
			{"z", "192.0.2.3", "mailbox", surprise, 0},
			{"z", "192.0.2.3", "mailbox", looked, 0},
			{"a", "192.0.2.1", "", both2, 120_000}, // the expected refusals are over
			{"e", "192.0.2.1", "", asked, 0},
		} {
			r.clock.Add(step.after)
			d := take(t, set, from(step.mailbox, step.client))
			if got := c.since(); got != step.want || d.Allowed != (step.by == "") || !d.Allowed && d.Rule != step.by || len(d.Mailbox.Tiers) != 2 || len(d.Refusals) != len(strings.Fields(step.by)) {
				t.Errorf("remote %v, send %d: %s, want %s; %+v", remote, i, got, step.want, d)
			}
		}
		if n := r.left(visitor, "192.0.2.3"); n != 2 {
			t.Errorf("remote %v: a refused visitor has %d left of 2", remote, n)
		}
	}
}

// What could not be refunded exactly, or is decided by a look, is looked at before anything is charged.
func TestTake_RulesThatLook_ChargeNothingInVain(t *testing.T) {
	for _, remote := range both {
		for name, second := range map[string]func(*rig) rules.Rule{
			"queue":  func(r *rig) rules.Rule { return r.queue("second", rules.ByAll, 1, 0) },
			"kept":   func(r *rig) rules.Rule { return r.quota("second", 1, 1) },
			"shadow": func(r *rig) rules.Rule { s := r.quota("second", 1, 1); s.Resends, s.Shadow = nil, true; return s },
			"ratio":  func(r *rig) rules.Rule { b := r.budget(window(r, 1, 1000), 50, 1000); b.Name = "second"; return b },
		} {
			r := newRig(t)
			var c calls
			mailbox, other := r.mailbox("hour=9/1h"), second(r)
			c.of(&mailbox.Limiter, "mailbox")
			c.of(&other.Limiter, "second")
			set := r.set(remote, mailbox, other)
			for i := range 2 {
				d := take(t, set, to(fmt.Sprintf("m%d@b.example", i)))
				want := "peek mailbox, peek second, take mailbox, take second"
				if i > 0 && name != "shadow" {
					want = "peek mailbox, peek second"
				}
				if got := c.since(); got != want || d.Allowed != (strings.Contains(want, "take")) {
					t.Errorf("%s, remote %v, send %d: %s, want %s; %v", name, remote, i, got, want, d.Allowed)
				}
			}
		}
	}
}

// Where nothing refuses, Redis is asked for each rule once, at the same time.
func TestTake_AdmittedOnRedis_OneRoundTrip(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = client.Close() })
	meeting := make(chan struct{})
	rule := func(name string, by rules.By, tiers string) rules.Rule {
		limiter := must.Get(cluster.New(client, "test:"+name, throttletest.Policy(t, tiers)))(t)
		fault(&limiter).On(func(ctx context.Context, event, _ string) error {
			if event == "take" {
				select { // each waits for the other
				case meeting <- struct{}{}:
				case <-meeting:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		return rules.Rule{Name: name, By: by, Limiter: limiter}
	}
	set := must.Get(rules.New(rules.Options{Remote: true}, rule("mailbox", rules.ByMailbox, "minute=1/60s"), rule("visitor", rules.ByClientIP, "hour=9/1h")))(t)
	for i := range 3 {
		before := proxy.Sent("evalsha")
		d := take(t, set, to(fmt.Sprintf("m%d@example.com", i)))
		if n := proxy.Sent("evalsha") - before; !d.Allowed || i > 0 && n != 2 { // the scripts have to be loaded once
			t.Errorf("send %d: %v, %d commands", i, d.Allowed, n)
		}
	}
}

// A rule that fails when it is asked after another has refused is an error, as in a look, and what was charged is
// refunded, or still to be released.
func TestTake_RefusedUnexpectedly_FailuresAndCharges(t *testing.T) {
	for _, tt := range []struct {
		refuses, fails string // which rule fails, and when
		charges        string // of a remote set
		failed         bool
	}{
		{"mailbox", "visitor peek", "", false},    // it was charged, so it is not asked again
		{"mailbox", "visitor release", "", false}, // a counter's refund is not repeated
		{"visitor", "mailbox peek", "", false},
		{"visitor", "mailbox release", "mailbox", false},
		{"visitor", "mailbox take", "mailbox", true},
	} {
		for _, remote := range both {
			r := newRig(t)
			mailbox, visitor := r.mailbox("hour=1/1h"), r.visitor(1)
			if tt.refuses == "mailbox" {
				must.Get(mailbox.Limiter.Take(ctx, "a@b.example"))(t)
			} else {
				must.Get(visitor.Limiter.Take(ctx, "192.0.2.1"))(t)
			}
			name, event, _ := strings.Cut(tt.fails, " ")
			fault(map[string]**throttle.Limiter{"mailbox": &mailbox.Limiter, "visitor": &visitor.Limiter}[name], event)
			failed := tt.failed || tt.refuses == "mailbox" && event == "peek" && !remote // then it was not asked before
			set := r.set(remote, mailbox, visitor)
			d, err := set.Take(ctx, to("a@b.example"), throttle.NewID())
			if failed != errors.Is(err, throttletest.ErrFault) || d.Allowed || named(d.Charges) != tt.charges {
				t.Errorf("%+v, remote %v: %v, %+v", tt, remote, err, d)
			}
			sent := 0
			if tt.refuses == "mailbox" {
				sent = 1
			}
			if !failed && (d.Rule != tt.refuses || d.Mailbox.Sent != sent || (d.Lost != nil) != (remote && tt.fails == "visitor release")) {
				t.Errorf("%+v, remote %v: %+v", tt, remote, d)
			}
		}
	}
}
