package rules_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const start = int64(1_800_000_000_000)

// A shop opens limiters that share a disk and a clock.
type shop struct {
	t     testing.TB
	disk  *cache.Disk
	clock atomic.Int64
}

func openShop(t testing.TB) *shop {
	s := &shop{t: t, disk: cachetest.Open(t, cache.Memory)}
	s.clock.Store(start)
	return s
}

func (s *shop) limiter(name, tiers string) *local.Limiter {
	s.t.Helper()
	l, err := local.New(s.disk, local.Options{Policy: throttletest.Policy(s.t, tiers), Name: name, Size: cachetest.Small, Now: s.clock.Load})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(l.Close)
	return l
}

func (s *shop) rule(name string, by rules.By, tiers string) rules.Rule {
	return rules.Rule{Name: name, By: by, Limiter: s.limiter(name, tiers)}
}

func newSet(t testing.TB, o rules.Options, all ...rules.Rule) *rules.Set {
	t.Helper()
	set, err := rules.New(o, all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// take does not end the test where it fails: many may take at once.
func take(t testing.TB, set *rules.Set, send rules.Send) rules.Decision {
	t.Helper()
	d, err := set.Take(context.Background(), send, throttle.NewID())
	if err != nil {
		t.Errorf("take: %v", err)
	}
	return d
}

func used(t testing.TB, l throttle.Limiter, key string) int {
	t.Helper()
	h, err := l.(throttle.Historian).History(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return len(h)
}

var visitor = netip.MustParseAddr("192.0.2.1")

func to(mailbox string) rules.Send {
	return rules.Send{Mailbox: mailbox, Domain: mailbox[strings.IndexByte(mailbox, '@')+1:], Client: visitor, Caller: "web", Template: "code"}
}

// Every way to count, one after the other the one that refuses.
func TestEachRuleRefusesInItsTurn(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, by := range rules.Bys() {
			s := openShop(t)
			mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "minute=3/60s")
			other := s.rule("other", by, "hour=2/1h")
			set := newSet(t, rules.Options{Remote: remote}, mailbox, other)
			for i := range 2 {
				if d := take(t, set, to("a@b.example")); !d.Allowed {
					t.Fatalf("%s: send %d was refused by %s", by, i, d.Rule)
				}
			}
			d := take(t, set, to("a@b.example"))
			if d.Allowed || d.Rule != "other" || d.Verdict.Limit != "hour" || d.Verdict.Wait != 3_600_000 {
				t.Errorf("by %s: %v %s %s %d", by, d.Allowed, d.Rule, d.Verdict.Limit, d.Verdict.Wait)
			}
			if n := used(t, mailbox.Limiter, "a@b.example"); n != 2 || d.Mailbox.Sent() != 2 {
				t.Errorf("by %s: the mailbox was charged %d times, and the decision says %d; want 2", by, n, d.Mailbox.Sent())
			}
		}
	}
}

// What is not known of a send is not counted.
func TestRulesThatDoNotApply(t *testing.T) {
	s := openShop(t)
	address := s.rule("client-ip", rules.ByClientIP, "hour=1/1h")
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=9/1h"), address)
	for range 3 {
		send := to("a@b.example")
		send.Client = netip.Addr{}
		if d := take(t, set, send); !d.Allowed {
			t.Fatalf("refused by %s", d.Rule)
		}
	}
	if d := take(t, set, to("a@b.example")); !d.Allowed {
		t.Fatalf("the first with an address was refused by %s", d.Rule)
	}
	if d := take(t, set, to("c@d.example")); d.Allowed || d.Rule != "client-ip" {
		t.Fatalf("the second with an address: %v by %s", d.Allowed, d.Rule)
	}
}

func TestAddressesOfOneVisitor(t *testing.T) {
	tests := []struct {
		first, second string
		one           bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8:0:0:ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	}
	for _, tt := range tests {
		s := openShop(t)
		set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=9/1h"), s.rule("client-ip", rules.ByClientIP, "hour=1/1h"))
		first, second := to("a@b.example"), to("c@b.example")
		first.Client, second.Client = netip.MustParseAddr(tt.first), netip.MustParseAddr(tt.second)
		take(t, set, first)
		if d := take(t, set, second); d.Allowed == tt.one {
			t.Errorf("%s and %s: second allowed %v", tt.first, tt.second, d.Allowed)
		}
	}
}

// The rule that refuses longest is named; after a yes the one that the next waits for.
func TestTheLongestWaitIsNamed(t *testing.T) {
	s := openShop(t)
	set := newSet(t, rules.Options{},
		s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
		s.rule("client-ip", rules.ByClientIP, "hour=1/1h"),
		s.rule("provider", rules.ByAll, "second=1/1s"))
	for i, want := range []bool{true, false} {
		d := take(t, set, to("a@b.example"))
		if d.Allowed != want || d.Rule != "client-ip" || d.Verdict.Wait != 3_600_000 || len(d.Mailbox.Tiers()) != 1 {
			t.Errorf("ask %d: %v %s %d", i, d.Allowed, d.Rule, d.Verdict.Wait)
		}
		if refused := len(d.Refusals); !want && refused != 3 {
			t.Errorf("%d refusals, want 3", refused)
		}
	}
}

func TestShadowRefusesNothing(t *testing.T) {
	s := openShop(t)
	shadow := s.rule("trial", rules.ByAll, "hour=1/1h")
	shadow.Shadow = true
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=2/1h"), shadow)
	for i := range 2 {
		d := take(t, set, to("a@b.example"))
		if !d.Allowed || len(d.Shadow) != i {
			t.Errorf("send %d: %v, %d in the shadow", i, d.Allowed, len(d.Shadow))
		}
	}
	before := used(t, shadow.Limiter, "all")
	// Where another refuses as well, the shadow would have made no difference.
	if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != rules.MailboxRule || len(d.Shadow) != 0 {
		t.Errorf("%v by %s, %d in the shadow", d.Allowed, d.Rule, len(d.Shadow))
	}
	if after := used(t, shadow.Limiter, "all"); before != 1 || after != 1 {
		t.Errorf("the shadow counted %d and then %d, want what was sent within its limit, 1", before, after)
	}
}

func TestExempt(t *testing.T) {
	tests := []struct {
		exempt rules.Exempt
		want   bool
	}{
		{rules.Exempt{}, false},
		{rules.Exempt{Mailboxes: []string{"a@b.example"}}, true},
		{rules.Exempt{Mailboxes: []string{"@b.example"}}, true},
		{rules.Exempt{Mailboxes: []string{"*@b.example"}}, true},
		{rules.Exempt{Mailboxes: []string{"a*@b.example", "x@y.example"}}, true},
		{rules.Exempt{Mailboxes: []string{"?@b.example", "[a]@b.example", "a@b.exampl*"}}, false},
		{rules.Exempt{Mailboxes: []string{"**a**@b.example"}}, true},
		{rules.Exempt{Mailboxes: []string{"a*a@b.example", "*a*a*@b.example"}}, false},
		{rules.Exempt{Mailboxes: []string{"*"}}, false},
		{rules.Exempt{Mailboxes: []string{"*@*"}}, false},
		{rules.Exempt{Mailboxes: []string{"@example"}}, false},
		{rules.Exempt{Mailboxes: []string{"b*@b.example"}}, false},
		{rules.Exempt{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, true},
		{rules.Exempt{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}, false},
		{rules.Exempt{Networks: []netip.Prefix{netip.MustParsePrefix("::/0")}}, false},
		{rules.Exempt{Callers: []string{"web"}}, true},
		{rules.Exempt{Callers: []string{"batch", ""}}, false},
	}
	for _, tt := range tests {
		s := openShop(t)
		mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=1/1h")
		mailbox.Exempt = tt.exempt
		set := newSet(t, rules.Options{}, mailbox)
		take(t, set, to("a@b.example"))
		if d := take(t, set, to("a@b.example")); d.Allowed != tt.want {
			t.Errorf("%v: the second send allowed %v", tt.exempt, d.Allowed)
		}
	}
}

// An address is the same however it is written, and a caller without a name is nobody.
func TestExemptAsItIsWritten(t *testing.T) {
	tests := []struct {
		exempt rules.Exempt
		client string
		caller string
		want   bool
	}{
		{rules.Exempt{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, "::ffff:192.0.2.1", "web", true},
		{rules.Exempt{Networks: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}}, "fe80::1%eth0", "web", true},
		{rules.Exempt{Callers: []string{""}}, "192.0.2.1", "", false},
	}
	for _, tt := range tests {
		s := openShop(t)
		mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=1/1h")
		mailbox.Exempt = tt.exempt
		set := newSet(t, rules.Options{}, mailbox)
		send := to("a@b.example")
		send.Client, send.Caller = netip.MustParseAddr(tt.client), tt.caller
		take(t, set, send)
		if d := take(t, set, send); d.Allowed != tt.want {
			t.Errorf("%s, caller %q: the second send allowed %v", tt.client, tt.caller, d.Allowed)
		}
	}
}

// When little is left, it is kept for mailboxes that were sent nothing yet.
func TestTheRestIsForFirstMails(t *testing.T) {
	s := openShop(t)
	all := s.limiter("provider", "day=4/24h")
	policy := throttletest.Policy(t, "day=2/24h")
	resends := resender{all, policy}
	set := newSet(t, rules.Options{},
		s.rule(rules.MailboxRule, rules.ByMailbox, "hour=9/1h"),
		rules.Rule{Name: "provider", By: rules.ByAll, Limiter: all, Resends: resends})
	for _, ask := range []struct {
		mailbox string
		want    bool
	}{
		{"a@b.example", true}, {"a@b.example", true}, // a resend while there is enough
		{"a@b.example", false}, {"c@b.example", true}, {"c@b.example", false},
		{"d@b.example", true}, {"e@b.example", false},
	} {
		if d := take(t, set, to(ask.mailbox)); d.Allowed != ask.want || !d.Allowed && d.Rule != "provider" {
			t.Errorf("%s: %v by %s, want %v", ask.mailbox, d.Allowed, d.Rule, ask.want)
		}
	}
}

// What is kept for first mails is not for mailboxes of which no history is kept.
func TestTheRestIsNotForTheExempt(t *testing.T) {
	s := openShop(t)
	all := s.limiter("provider", "day=4/24h")
	policy := throttletest.Policy(t, "day=2/24h")
	mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=9/1h")
	mailbox.Exempt.Mailboxes = []string{"@test.example"}
	set := newSet(t, rules.Options{}, mailbox,
		rules.Rule{Name: "provider", By: rules.ByAll, Limiter: all, Resends: resender{all, policy}})
	for i, want := range []bool{true, true, false} {
		if d := take(t, set, to("bot@test.example")); d.Allowed != want {
			t.Errorf("send %d to an exempt mailbox: %v", i, d.Allowed)
		}
	}
	if d := take(t, set, to("a@b.example")); !d.Allowed {
		t.Errorf("a first mail was refused by %s", d.Rule)
	}
}

// A resender decides by a smaller policy about the records of another.
type resender struct {
	throttle.Historian
	policy throttle.Policy
}

func (r resender) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	v, err := r.Historian.Peek(ctx, key)
	if err != nil {
		return v, err
	}
	h, err := r.History(ctx, key)
	return throttle.Decide(r.policy, h, v.Now), err
}

func (r resender) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if v, err := r.Peek(ctx, key); err != nil || !v.Allowed {
		return v, err
	}
	return r.Historian.Take(ctx, key, id)
}

// Many at once, for places that do not reach for all: nobody is over a limit, and what
// was charged in vain is there again.
func TestRaceForTheLastPlaces(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := openShop(t)
		mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h")
		all := s.rule("all", rules.ByAll, "hour=7/1h")
		set := newSet(t, rules.Options{Remote: remote}, mailbox, all)
		boxes := []string{"a@b.example", "c@b.example", "d@b.example"}
		var admitted atomic.Int64
		var racers sync.WaitGroup
		for i := range 64 {
			racers.Go(func() {
				if take(t, set, to(boxes[i%3])).Allowed {
					admitted.Add(1)
				}
			})
		}
		racers.Wait()
		total := 0
		for _, box := range boxes {
			n := used(t, mailbox.Limiter, box)
			if total += n; n > 5 {
				t.Errorf("%d sends to one mailbox", n)
			}
		}
		if got := used(t, all.Limiter, "all"); int64(got) != admitted.Load() || total != got || got > 7 {
			t.Errorf("remote %v: %d admitted, %d on the record of all and %d on those of mailboxes", remote, admitted.Load(), got, total)
		}
	}
}

// Whoever is refused at a look is charged nowhere.
func TestALookThatRefusesChargesNobody(t *testing.T) {
	s := openShop(t)
	all := &counted{Limiter: s.limiter("all", "hour=5/1h")}
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=1/1h"), rules.Rule{Name: "all", By: rules.ByAll, Limiter: all})
	for _, allowed := range []bool{true, false} {
		if d := take(t, set, to("a@b.example")); d.Allowed != allowed || all.takes != 1 {
			t.Errorf("allowed %v, charged %d times", d.Allowed, all.takes)
		}
	}
}

func TestReleaseAndReset(t *testing.T) {
	s := openShop(t)
	mailbox, all := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h"), s.rule("all", rules.ByAll, "hour=7/1h")
	set := newSet(t, rules.Options{}, mailbox, all)
	ctx, id := context.Background(), throttle.NewID()
	if _, err := set.Take(ctx, to("a@b.example"), id); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := set.Release(ctx, to("a@b.example"), id); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := used(t, mailbox.Limiter, "a@b.example"), used(t, all.Limiter, "all"); a != 0 || b != 0 {
		t.Errorf("%d and %d on record after the release", a, b)
	}
	take(t, set, to("a@b.example"))
	if n, err := set.Reset(ctx, "a@b.example"); n != 1 || err != nil {
		t.Errorf("reset: %d, %v", n, err)
	}
	if a, b := used(t, mailbox.Limiter, "a@b.example"), used(t, all.Limiter, "all"); a != 0 || b != 1 {
		t.Errorf("%d and %d on record after the reset, want 0 and 1: the send did go out", a, b)
	}
}

// All that is counted by mailbox is forgotten, and nothing else.
func TestResetOfEveryRuleByMailbox(t *testing.T) {
	s := openShop(t)
	mailbox, other := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h"), s.rule("other", rules.ByMailbox, "day=7/24h")
	caller := s.rule("caller", rules.ByAPIKey, "day=7/24h")
	b := &broken{Historian: s.limiter("broken", "hour=5/1h"), reset: errors.New("failed")}
	set := newSet(t, rules.Options{}, rules.Rule{Name: "broken", By: rules.ByMailbox, Limiter: b}, caller, mailbox, other)
	if _, err := other.Limiter.Take(context.Background(), "a@b.example", throttle.NewID()); err != nil {
		t.Fatal(err)
	}
	send := to("a@b.example")
	send.Caller = "a@b.example"
	take(t, set, send)
	n, err := set.Reset(context.Background(), "a@b.example")
	if n != 1 || !errors.Is(err, b.reset) || !strings.Contains(err.Error(), "rule broken") {
		t.Errorf("reset: %d, %v", n, err)
	}
	if a, b, c := used(t, mailbox.Limiter, "a@b.example"), used(t, other.Limiter, "a@b.example"), used(t, caller.Limiter, "a@b.example"); a != 0 || b != 0 || c != 1 {
		t.Errorf("%d, %d and %d on record, want 0, 0 and 1", a, b, c)
	}
}

// Under a clock that has stepped back the wait is counted as callers will see it.
func TestWaitsUnderAClockThatSteppedBack(t *testing.T) {
	s := openShop(t)
	set := newSet(t, rules.Options{},
		s.rule("all", rules.ByAll, "minute=1/60s"), s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/50s"))
	// Each rule is charged alone: the mailbox's now, the total's 20 s ago.
	s.clock.Add(-20_000)
	first := to("x@b.example")
	take(t, set, first)
	s.clock.Store(start)
	if _, err := set.Mailbox().Take(context.Background(), "a@b.example", throttle.NewID()); err != nil {
		t.Fatal(err)
	}
	s.clock.Store(start - 15_000)
	d := take(t, set, to("a@b.example"))
	// all: until start+40 s, so 55 s from now. mailbox: until start+50 s, 65 s from now.
	if d.Rule != rules.MailboxRule || d.Verdict.RetryAt() != start+50_000 {
		t.Errorf("%s until %d", d.Rule, d.Verdict.RetryAt()-start)
	}
}

// A broken limiter fails when it is asked to.
type broken struct {
	throttle.Historian
	peek, take, release, reset error
}

func (b *broken) Reset(ctx context.Context, key string) (int, error) {
	if b.reset != nil {
		return 0, b.reset
	}
	return b.Historian.Reset(ctx, key)
}

func (b *broken) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if b.peek != nil {
		return throttle.Verdict{}, b.peek
	}
	return b.Historian.Peek(ctx, key)
}

func (b *broken) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if b.take != nil {
		return throttle.Verdict{}, b.take
	}
	return b.Historian.Take(ctx, key, id)
}

func (b *broken) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	if b.release != nil {
		return false, b.release
	}
	return b.Historian.Release(ctx, key, id)
}

func TestFailures(t *testing.T) {
	failed := errors.New("failed")
	for name, b := range map[string]*broken{"peek": {peek: failed}, "take": {take: failed}} {
		for _, shadow := range []bool{false, true} {
			s := openShop(t)
			b := *b
			b.Historian = s.limiter("other", "hour=5/1h")
			set := newSet(t, rules.Options{},
				s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h"),
				rules.Rule{Name: "other", By: rules.ByAll, Limiter: &b, Shadow: shadow})
			d, err := set.Take(context.Background(), to("a@b.example"), throttle.NewID())
			if shadow {
				// One that was charged after all is not told as failed.
				told := len(d.Shadow) == 1 && errors.Is(d.Shadow[0].Err, failed)
				if err != nil || !d.Allowed || told != (name == "take") {
					t.Errorf("a shadow's %s failed: %v, %+v", name, err, d)
				}
				continue
			}
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), "rule other") || d.Allowed {
				t.Errorf("%s failed: %v, allowed %v", name, err, d.Allowed)
			}
		}
	}
}

// A shadow that was charged for a send that another refused after all is given its place
// back like the rest.
func TestAShadowIsGivenBack(t *testing.T) {
	s := openShop(t)
	shadow := s.rule("trial", rules.ByDomain, "hour=1/1h")
	shadow.Shadow = true
	set := newSet(t, rules.Options{}, shadow, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h"),
		rules.Rule{Name: "all", By: rules.ByAll, Limiter: &snatched{Historian: s.limiter("all", "hour=1/1h"), t: t}})
	if d := take(t, set, to("a@b.example")); d.Allowed || d.Rule != "all" || used(t, shadow.Limiter, "b.example") != 0 {
		t.Errorf("%v by %s, and the shadow counts %d", d.Allowed, d.Rule, used(t, shadow.Limiter, "b.example"))
	}
}

// A shadow that fails is heard also where another rule refuses.
func TestAFailingShadowIsHeard(t *testing.T) {
	s := openShop(t)
	failed := errors.New("failed")
	set := newSet(t, rules.Options{},
		s.rule(rules.MailboxRule, rules.ByMailbox, "hour=1/1h"),
		rules.Rule{Name: "other", By: rules.ByAll, Limiter: &broken{Historian: s.limiter("other", "hour=5/1h"), peek: failed, take: failed}, Shadow: true})
	for _, allowed := range []bool{true, false} {
		if d := take(t, set, to("a@b.example")); d.Allowed != allowed || len(d.Shadow) != 1 || !errors.Is(d.Shadow[0].Err, failed) {
			t.Errorf("%v by %s, in the shadow %+v", d.Allowed, d.Rule, d.Shadow)
		}
	}
}

// What cannot be given back at once is owed, unless it is a shadow's, and the mailbox is shown
// as it was.
func TestOwed(t *testing.T) {
	for _, shadow := range []bool{false, true} {
		s := openShop(t)
		b := &broken{Historian: s.limiter("mailbox", "hour=5/1h"), release: errors.New("failed")}
		thief := s.limiter("all", "hour=1/1h")
		set := newSet(t, rules.Options{},
			rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: b, Shadow: shadow},
			rules.Rule{Name: "all", By: rules.ByAll, Limiter: &snatched{Historian: thief, t: t}})
		id := throttle.NewID()
		if _, err := b.Take(context.Background(), "a@b.example", id); err != nil {
			t.Fatal(err)
		}
		d := take(t, set, to("a@b.example"))
		if d.Allowed || d.Owed == shadow || d.Rule != "all" || d.Mailbox.Sent() != 1 {
			t.Errorf("allowed %v, owed %v, rule %s, %d sends shown", d.Allowed, d.Owed, d.Rule, d.Mailbox.Sent())
		}
		if err := set.Release(context.Background(), to("a@b.example"), id); errors.Is(err, b.release) == shadow {
			t.Errorf("release: %v", err)
		}
	}
}

// What was charged, or may have been, is owed after an error. Looking charges nothing, and
// nor does a rule that proves it. The error is proof where nothing is owed, and only there.
func TestOwedAfterAnError(t *testing.T) {
	failed := errors.New("failed")
	unchanged := throttle.Unchanged(failed)
	for _, tt := range []struct {
		name           string
		mailbox, other broken
		alone, shadow  bool // no other rule; the other in the shadow
		queues         bool // the other is charged when the mailbox's rule has been
		owed           bool
	}{
		{name: "looking failed", mailbox: broken{peek: failed}},
		{name: "a charge failed", mailbox: broken{take: failed}, alone: true, owed: true},
		{name: "a charge was not made", mailbox: broken{take: unchanged}, alone: true},
		{name: "no charge was made", mailbox: broken{take: unchanged}, other: broken{take: unchanged}},
		{name: "one of two was charged", mailbox: broken{take: unchanged}, owed: true},
		{name: "one of two may have been", mailbox: broken{take: unchanged}, other: broken{take: failed}, owed: true},
		{name: "one before was charged", other: broken{take: unchanged}, queues: true, owed: true},
		{name: "one after was not asked", mailbox: broken{take: unchanged}, other: broken{take: failed}, queues: true},
		{name: "a shadow was charged", mailbox: broken{take: unchanged}, shadow: true, owed: true},
		{name: "a shadow may have been", mailbox: broken{take: unchanged}, other: broken{take: failed}, shadow: true, owed: true},
		{name: "nor was a shadow", mailbox: broken{take: unchanged}, other: broken{take: unchanged}, shadow: true},
	} {
		for _, remote := range []bool{false, true} {
			s := openShop(t)
			mailbox, other := tt.mailbox, tt.other
			mailbox.Historian, other.Historian = s.limiter("mailbox", "hour=5/1h"), s.limiter("other", "hour=5/1h")
			all := []rules.Rule{{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: &mailbox}}
			if !tt.alone {
				all = append(all, rules.Rule{Name: "other", By: rules.ByAll, Limiter: &other, Shadow: tt.shadow, Queues: tt.queues})
			}
			d, err := newSet(t, rules.Options{Remote: remote}, all...).Take(context.Background(), to("a@b.example"), throttle.NewID())
			if !errors.Is(err, failed) || d.Allowed || d.Owed != tt.owed || errors.Is(err, throttle.ErrUnchanged) == tt.owed {
				t.Errorf("%s, remote %v: %v, allowed %v, owed %v, proof %v", tt.name, remote, err, d.Allowed, d.Owed, errors.Is(err, throttle.ErrUnchanged))
			}
		}
	}
}

// A shadow of which nobody knows whether it was charged is given back with the rest.
func TestAShadowInDoubtIsGivenBack(t *testing.T) {
	s := openShop(t)
	shadow := &unheard{Historian: s.limiter("trial", "hour=1/1h")}
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h"),
		rules.Rule{Name: "trial", By: rules.ByDomain, Limiter: shadow, Shadow: true},
		rules.Rule{Name: "all", By: rules.ByAll, Limiter: &snatched{Historian: s.limiter("all", "hour=1/1h"), t: t}})
	if d := take(t, set, to("a@b.example")); d.Allowed || used(t, shadow, "b.example") != 0 {
		t.Errorf("allowed %v, and the shadow counts %d", d.Allowed, used(t, shadow, "b.example"))
	}
}

// unheard is a limiter that is charged, and whose answer is lost.
type unheard struct{ throttle.Historian }

func (u *unheard) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if _, err := u.Historian.Take(ctx, key, id); err != nil {
		return throttle.Verdict{}, err
	}
	return throttle.Verdict{}, errors.New("unheard")
}

// snatched is a limiter whose last place goes to another right after it was seen.
type snatched struct {
	throttle.Historian
	t testing.TB
}

func (s *snatched) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	v, err := s.Historian.Peek(ctx, key)
	if _, err := s.Historian.Take(ctx, key, throttle.NewID()); err != nil {
		s.t.Error(err)
	}
	return v, err
}

func TestNewRefuses(t *testing.T) {
	s := openShop(t)
	mailbox := s.rule(rules.MailboxRule, rules.ByMailbox, "hour=5/1h")
	tests := []struct {
		rules []rules.Rule
		want  string
	}{
		{nil, "there is no rule mailbox"},
		{[]rules.Rule{mailbox, mailbox}, "rule mailbox: the name is used twice"},
		{[]rules.Rule{{Name: rules.MailboxRule, By: rules.ByAll, Limiter: mailbox.Limiter}}, "rule mailbox: it counts by mailbox, and keeps every send"},
		{[]rules.Rule{mailbox, {Name: "Other", By: rules.ByAll, Limiter: mailbox.Limiter}}, `rule "Other": a name is lower-case letters, digits, - and _, and starts with a letter`},
		{[]rules.Rule{mailbox, {Name: "other", By: "moon", Limiter: mailbox.Limiter}}, `rule other: nothing can be counted by "moon"`},
		{[]rules.Rule{mailbox, {Name: "other", By: rules.ByAll}}, "rule other: it has no limiter"},
	}
	for _, tt := range tests {
		if _, err := rules.New(rules.Options{}, tt.rules...); err == nil || err.Error() != tt.want {
			t.Errorf("\n got %v\nwant %s", err, tt.want)
		}
	}
	if bys := rules.Bys(); len(bys) != 6 || slices.Contains(bys, "") {
		t.Errorf("%v", bys)
	}
}
