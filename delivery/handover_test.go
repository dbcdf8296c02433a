package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// charged is how many sends a mailbox is charged.
func (l limiters) charged(t *testing.T, mailbox string) int {
	t.Helper()
	return 9 - must.Get(l.mailbox.Peek(t.Context(), mailbox))(t).Remaining()
}

// An email to several recipients is charged to each, and what came of it decides who stays charged:
// of recipients of which a relay refused one, that one alone.
func TestHandOver_EachOutcome_ChargesEachRecipient(t *testing.T) {
	alice, bob := parse(t, "alice@example.com"), parse(t, "bob@example.com")
	failed := func(o relay.Outcome, to address.Address) error { return &relay.Error{Outcome: o, To: to} }
	for name, tt := range map[string]struct {
		relay      fakeRelay
		kind       Kind
		alice, bob int
		caller     int // of both
	}{
		"accepted":            {fakeRelay{}, "", 1, 1, 2},
		"bob refused":         {fakeRelay{begin: failed(relay.Rejected, bob)}, Rejected, 0, 1, 1},
		"bob deferred":        {fakeRelay{begin: failed(relay.Deferred, bob)}, Deferred, 0, 0, 0},
		"text refused":        {fakeRelay{commit: failed(relay.Rejected, address.Address{})}, Rejected, 1, 1, 2},
		"no answer":           {fakeRelay{commit: failed(relay.Unknown, address.Address{})}, Unknown, 1, 1, 2},
		"no relay":            {fakeRelay{begin: failed(relay.Unavailable, address.Address{})}, Unavailable, 0, 0, 0},
		"not to be sent":      {fakeRelay{commit: relay.ErrUnsendable}, Failed, 0, 0, 0},
		"a panic at the end":  {fakeRelay{panics: "commit"}, Failed, 1, 1, 2},
		"a panic before that": {fakeRelay{panics: "begin"}, Failed, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.relay = tt.relay
			q, l := b.send()
			mail := b.Attempt(t.Context(), "r")
			for _, to := range []address.Address{alice, bob} {
				traits := q.Traits
				traits.Mailbox = to.Key()
				must.Get(mail.Charge(Send{Rules: q.Rules, Mail: message.Request{To: to}, Traits: traits}))(t)
			}
			err := mail.HandOver(t.Context(), relay.Envelope{From: alice, By: time.Now().Add(time.Minute)}, []byte("text"))
			mail.Abandon() // which changes nothing any more
			a, z, all := l.charged(t, "alice@example.com"), l.charged(t, "bob@example.com"), 9-must.Get(l.caller.Peek(t.Context(), "shop"))(t).Remaining()
			if kindOf(err) != tt.kind || a != tt.alice || z != tt.bob || all != tt.caller {
				t.Errorf("%v; alice is charged %d, bob %d, the caller %d", err, a, z, all)
			}
		})
	}
}

// A refused recipient is not charged, and the others go on. What does not leave is refunded, also if the
// store fails at that moment.
func TestAbandon_Charged_Refunded(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	for range 9 {
		must.Get(l.mailbox.Take(t.Context(), "bob@example.com"))(t)
	}
	mail := b.Attempt(t.Context(), "r")
	must.Get(mail.Charge(q))(t)
	full := q.Traits
	full.Mailbox = "bob@example.com"
	_, err := mail.Charge(Send{Rules: q.Rules, Mail: message.Request{To: parse(t, "bob@example.com")}, Traits: full})
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Limited || e.Result.Decision.Verdict.Wait <= 0 || l.used(t) != "1 1 1" {
		t.Fatalf("%v, used %s", err, l.used(t))
	}
	l.faults.Fail("release")
	mail.Abandon()
	l.faults.Fail()
	b.Close(t.Context())
	if b.relay.committed != 0 || l.used(t) != "0 0 0" || b.count(RefundDone) != 1 {
		t.Errorf("used %s, %d refunds", l.used(t), b.count(RefundDone))
	}
}

// A recipient whose charge fails in one store is refunded by the others, also if that fails at first.
func TestCharge_OneRuleFails_OthersRefunded(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	l.faults.Fail("taken", "release")
	_, err := b.Attempt(t.Context(), "r").Charge(q)
	l.faults.Fail()
	b.Close(t.Context())
	if kindOf(err) != Storage || l.used(t) != "0 0 0" || b.count(RefundDone) != 1 {
		t.Errorf("%v, used %s, %d refunds", err, l.used(t), b.count(RefundDone))
	}
}

// An email whose recipient's position in a queue comes too late for its text does not wait.
func TestHandOver_QueueTooLong_Busy(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	mail := b.Attempt(t.Context(), "r")
	must.Get(mail.Charge(q))(t)
	mail.charges[0].ready = time.Now().Add(time.Hour)
	err := mail.HandOver(t.Context(), relay.Envelope{By: time.Now().Add(time.Minute)}, nil)
	if !errors.Is(err, ErrQueue) || kindOf(err) != Busy || l.used(t) != "0 0 0" {
		t.Errorf("%v, used %s", err, l.used(t))
	}
}

func parse(t *testing.T, text string) address.Address {
	t.Helper()
	return must.Get(address.Parse(text, address.Identity{}))(t)
}

// What is refunded of a deferred recipient leaves the decision that a caller was given as it was.
func TestHandOver_Deferred_DecisionStaysWhole(t *testing.T) {
	b := newBench(t)
	b.relay.begin = &relay.Error{Outcome: relay.Deferred, To: parse(t, "alice@example.com")}
	q, _ := b.send()
	exact := must.Get(throttle.ParsePolicy("day=9/24h"))(t)
	set := must.Get(rules.New(rules.Options{}, rules.Rule{Name: "visitor", By: rules.ByClientIP, Limiter: local.New(b.store.Table("visitor"), exact)},
		rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: local.New(b.store.Table("mailbox"), exact)}))(t)
	q.Traits.Mailbox, q.Traits.Client = "alice@example.com", netip.MustParseAddr("192.0.2.1")
	mail := b.Attempt(t.Context(), "r")
	result := must.Get(mail.Charge(Send{Rules: set, Mail: message.Request{To: parse(t, "alice@example.com")}, Traits: q.Traits}))(t)
	before := fmt.Sprint(result.Decision.Charges)
	if err := mail.HandOver(t.Context(), relay.Envelope{From: parse(t, "alice@example.com"), By: time.Now().Add(time.Minute)}, []byte("text")); kindOf(err) != Deferred {
		t.Fatal(err)
	}
	if after := fmt.Sprint(result.Decision.Charges); after != before {
		t.Errorf("charges %s became %s", before, after)
	}
}

// A counter that cannot refund a send that another rule refuses loses it, and the log says so.
func TestTake_CounterLosesARefund_IsLogged(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	lost, full := &throttletest.Faulty{}, &throttletest.Faulty{}
	counter := must.Get(throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: 9, Window: 24 * time.Hour}))(t)
	visitor := full.Break(l.caller)
	set := must.Get(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: l.mailbox},
		rules.Rule{Name: "counter", By: rules.ByAll, Limiter: lost.Break(local.New(b.store.Table("counter"), counter))},
		rules.Rule{Name: "last", By: rules.ByAPIKey, Limiter: visitor}))(t)
	lost.Fail("release")
	full.On(func(ctx context.Context, event, key string) error { // another send is faster
		for n := 0; event == "take" && n < 9; n++ {
			must.Get(l.caller.Take(ctx, key))(t)
		}
		return nil
	})
	if _, err := b.Attempt(t.Context(), "r").Charge(Send{Rules: set, Mail: message.Request{To: parse(t, "alice@example.com")}, Traits: q.Traits}); kindOf(err) != Limited {
		t.Fatal(err)
	}
	if text := b.log.String(); !strings.Contains(text, "could not be refunded") || !strings.Contains(text, "rule counter") {
		t.Errorf("the log has %q", text)
	}
}
