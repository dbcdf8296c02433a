package rules_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
)

// calls are all that a Set can be asked about a send.
var calls = map[string]func(*rules.Set, rules.Send) (allowed bool, err error){
	"take": func(s *rules.Set, send rules.Send) (bool, error) {
		d, err := s.Take(context.Background(), send, throttle.NewID())
		return d.Allowed || d.Owed, err
	},
	"peek": func(s *rules.Set, send rules.Send) (bool, error) {
		d, err := s.Peek(context.Background(), send)
		return d.Allowed, err
	},
	"release": func(s *rules.Set, send rules.Send) (bool, error) {
		return false, s.Release(context.Background(), send, throttle.NewID())
	},
	"reset": func(s *rules.Set, send rules.Send) (bool, error) {
		_, err := s.Reset(context.Background(), send.Mailbox)
		return false, err
	},
}

// The mailbox's rule is for every send: one without a mailbox is none, and charges nobody.
func TestASendWithoutAMailbox(t *testing.T) {
	s := openShop(t)
	all := s.rule("all", rules.ByAll, "hour=1/1h")
	set := newSet(t, rules.Options{}, s.rule(rules.MailboxRule, rules.ByMailbox, "hour=9/1h"), all)
	for _, mailbox := range []string{"", strings.Repeat("m", throttle.MaxKey+1)} {
		for doing, ask := range calls {
			allowed, err := ask(set, rules.Send{Mailbox: mailbox, Domain: "b.example", Client: visitor})
			if allowed || !errors.Is(err, throttle.ErrKey) || !errors.Is(err, throttle.ErrUnchanged) {
				t.Errorf("%s with a mailbox of %d bytes: %v, %v", doing, len(mailbox), allowed, err)
			}
		}
	}
	if n := used(t, all.Limiter, "all"); n != 0 {
		t.Errorf("the other rule was charged %d times", n)
	}
}

// A Set that New did not make has no rules, and says yes to nothing.
func TestASetWithoutRules(t *testing.T) {
	for _, set := range []*rules.Set{nil, {}} {
		for doing, ask := range calls {
			if allowed, err := ask(set, to("a@b.example")); allowed || !errors.Is(err, throttle.ErrUnchanged) {
				t.Errorf("%s: %v, %v", doing, allowed, err)
			}
		}
	}
}
