package rules_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What a decision says where the mailbox's own rule binds nobody.
func TestNothingToWaitFor(t *testing.T) {
	s := openShop(t)
	all := s.rule("all", rules.ByAll, "day=9/24h")
	shadow := s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s")
	shadow.Shadow = true
	exempt := s.rule(rules.MailboxRule+"2", rules.ByMailbox, "minute=1/60s")
	exempt.Name, exempt.Exempt = rules.MailboxRule, rules.Exempt{Mailboxes: []string{"@example.com"}}
	for name, own := range map[string]rules.Rule{"in the shadow": shadow, "exempt": exempt} {
		set := newSet(t, rules.Options{}, own, all)
		d := take(t, set, to("alice@example.com"))
		if !d.Allowed || d.Rule != "" || d.By != "" || d.Verdict.Limit != "" || d.Verdict.Wait != 0 || d.Verdict.Now != start {
			t.Errorf("%s: %+v", name, d)
		}
	}
	alone := newSet(t, rules.Options{}, exempt)
	if d := take(t, alone, to("alice@example.com")); !d.Allowed || d.Verdict.Now != 0 || len(d.Mailbox.Tiers()) != 0 {
		t.Errorf("no rule applies: %+v", d)
	}
}

// Each decision names what its rule counts by.
func TestDecisionsSayByWhat(t *testing.T) {
	s := openShop(t)
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"), s.rule("callers", rules.ByAPIKey, "day=1/24h"))
	if d := take(t, set, to("alice@example.com")); d.Rule != "callers" || d.By != rules.ByAPIKey {
		t.Errorf("by %q of rule %q", d.By, d.Rule)
	}
}

// Servers' clocks differ by a little: the latest counts.
func TestTheLatestClockIsTold(t *testing.T) {
	for _, ahead := range [][]int64{{0, 7}, {7, 0}} {
		s := openShop(t)
		all := []rules.Rule{s.rule(rules.MailboxRule, rules.ByMailbox, "minute=9/60s")}
		for i, ms := range ahead {
			limiter := memory.NewTiers(throttle.DefaultPolicy(), memory.Options{Now: func() int64 { return start + ms }})
			all = append(all, rules.Rule{Name: string(rune('a' + i)), By: rules.ByDomain, Limiter: limiter})
		}
		if d, err := newSet(t, rules.Options{}, all...).Peek(context.Background(), to("alice@example.com")); err != nil || d.Verdict.Now != start+7 {
			t.Errorf("%v: %d, %v", ahead, d.Verdict.Now-start, err)
		}
	}
}

// After a mailbox's first mail the wait is that of a resend, until it would be a first mail
// again, but for one that only a rule in the shadow would refuse.
func TestTheWaitAfterTheFirstMail(t *testing.T) {
	lane := throttletest.Policy(t, "day=1/24h")
	for _, shadow := range []bool{false, true} {
		s := openShop(t)
		provider := s.limiter("provider", "day=3/24h")
		set := newSet(t, rules.Options{},
			s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
			rules.Rule{Name: "provider", By: rules.ByAll, Limiter: provider, Resends: resender{provider, lane}, Shadow: shadow})
		for i, mailbox := range []string{"a@example.com", "b@example.com", "c@example.com"} {
			d := take(t, set, to(mailbox))
			after, err := set.Peek(context.Background(), to(mailbox))
			if err != nil {
				t.Fatal(err)
			}
			if wait := d.Verdict.RetryAt(); after.Verdict.RetryAt() != wait || after.Rule != d.Rule || (d.Rule == rules.MailboxRule) != (shadow || i < 2) {
				t.Errorf("mail %d, shadow %v: it says %s until %d, a look then %s until %d", i+1, shadow, d.Rule, wait, after.Rule, after.Verdict.RetryAt())
			}
		}
	}
}
