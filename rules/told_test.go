package rules_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
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

// After a mailbox's first mail the wait is that of a resend.
func TestTheWaitAfterTheFirstMail(t *testing.T) {
	s := openShop(t)
	provider := s.limiter("provider", "day=3/24h")
	lane, err := throttle.ParsePolicy("day=1/24h")
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, rules.Options{},
		s.rule(rules.MailboxRule, rules.ByMailbox, "minute=1/60s"),
		rules.Rule{Name: "provider", By: rules.ByAll, Limiter: provider, Resends: resender{provider, lane}})
	for i, mailbox := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		d := take(t, set, to(mailbox))
		after, err := set.Peek(context.Background(), to(mailbox))
		if err != nil {
			t.Fatal(err)
		}
		if wait := d.Verdict.RetryAt(); after.Verdict.RetryAt() != wait || after.Rule != d.Rule {
			t.Errorf("mail %d says %s until %d, a look then %s until %d", i+1, d.Rule, wait, after.Rule, after.Verdict.RetryAt())
		}
	}
}
