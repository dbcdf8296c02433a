package delivery

import (
	"errors"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// charged is how many sends a mailbox is charged.
func (l limiters) charged(t *testing.T, mailbox string) int {
	t.Helper()
	return 9 - must.Get(l.mailbox.Peek(t.Context(), mailbox))(t).Remaining()
}

// An email to several recipients is charged to each, and what came of it decides who stays charged:
// of recipients of which a relay refused one, that one alone.
func TestMail_EachOutcome_ChargesEachRecipient(t *testing.T) {
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
			mail := b.Mail(t.Context(), "r")
			for _, to := range []address.Address{alice, bob} {
				traits := q.Traits
				traits.Mailbox = to.Key()
				must.Get(mail.Charge(q.Rules, to, traits))(t)
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
func TestMail_Abandoned_Refunded(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	for range 9 {
		must.Get(l.mailbox.Take(t.Context(), "bob@example.com"))(t)
	}
	mail := b.Mail(t.Context(), "r")
	must.Get(mail.Charge(q.Rules, q.Mail.To, q.Traits))(t)
	full := q.Traits
	full.Mailbox = "bob@example.com"
	_, err := mail.Charge(q.Rules, parse(t, "bob@example.com"), full)
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

// An email whose recipient's position in a queue comes too late for its text does not wait.
func TestMail_QueueTooLong_Busy(t *testing.T) {
	b := newBench(t)
	q, l := b.send()
	mail := b.Mail(t.Context(), "r")
	must.Get(mail.Charge(q.Rules, q.Mail.To, q.Traits))(t)
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
