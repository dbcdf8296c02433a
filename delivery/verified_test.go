package delivery

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// readRelay keeps the text that it took over last.
type readRelay struct{ text string }

func (r *readRelay) Begin(context.Context, relay.Envelope) (relay.Tx, error) { return r, nil }
func (r *readRelay) Abort()                                                  {}
func (r *readRelay) Commit(text []byte) (relay.Receipt, error) {
	r.text = string(text)
	return relay.Receipt{}, nil
}

func (r *readRelay) code() string {
	return regexp.MustCompile(`\b\d{6}\b`).FindString(r.text[strings.Index(r.text, "\r\n\r\n"):])
}

// budgeted is a send under a rule by caller that counts unverified sends, and the faults of that rule.
func (b *bench) budgeted() (q Send, unproven *throttle.Limiter, faults *throttletest.Faulty) {
	q, l := b.send()
	faults = &throttletest.Faulty{}
	unproven = local.New(b.store.Table("unproven"), must.Get(throttle.ParsePolicy("floor=9/24h"))(b.t))
	q.Rules = must.Get(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: l.mailbox},
		rules.Rule{Name: "unproven", By: rules.ByAPIKey, Limiter: faults.Break(unproven), Budget: &rules.Budget{}}))(b.t)
	return q, unproven, faults
}

func (b *bench) outstanding(unproven *throttle.Limiter) int {
	b.t.Helper()
	return must.Get(unproven.Peek(b.t.Context(), "shop"))(b.t).Sent
}

// A send that did not leave is not charged, and its note goes with it: of the two sends that follow a right code returns both.
func TestVerify_RightCode_ReturnsWhatLeft(t *testing.T) {
	b := newBench(t)
	q, unproven, _ := b.budgeted()
	b.relay.begin = &relay.Error{Outcome: relay.Unavailable}
	if _, err := b.Attempt(t.Context(), "r").Send(q); kindOf(err) != Unavailable || b.outstanding(unproven) != 0 {
		t.Fatalf("%v, %d outstanding", err, b.outstanding(unproven))
	}
	own := q
	own.Mail.Code = "own482913"
	if _, err := b.Attempt(t.Context(), "r").Send(own); kindOf(err) != Unavailable || b.outstanding(unproven) != 0 {
		t.Fatalf("with a code of the caller's: %v, %d outstanding", err, b.outstanding(unproven))
	}
	if notes := must.Get(b.o.Codes.Report(t.Context(), q.Mail.To.Key(), "shop"))(t); len(notes) != 0 {
		t.Errorf("%d notes of sends that did not leave", len(notes))
	}
	sent := &readRelay{}
	b.o.Relay = sent
	for _, one := range []Send{own, q} {
		must.Get(b.Attempt(t.Context(), "r").Send(one))(t)
	}
	if n := b.outstanding(unproven); n != 2 {
		t.Errorf("%d outstanding", n)
	}
	if o := must.Get(b.Verify(t.Context(), q.Rules, q.Mail.To, "", sent.code()))(t); o.Result != verify.Correct || b.outstanding(unproven) != 0 {
		t.Errorf("result %d, %d outstanding", o.Result, b.outstanding(unproven))
	}
}

// A charge that cannot be returned at once is returned later, and the code is right all the same.
func TestVerify_ReleaseFails_ReturnedLater(t *testing.T) {
	b := newBench(t)
	q, unproven, faults := b.budgeted()
	sent := &readRelay{}
	b.o.Relay = sent
	must.Get(b.Attempt(t.Context(), "r").Send(q))(t)
	faults.Fail("release")
	if o := must.Get(b.Verify(t.Context(), q.Rules, q.Mail.To, "", sent.code()))(t); o.Result != verify.Correct || b.outstanding(unproven) != 1 {
		t.Errorf("result %d, %d outstanding", o.Result, b.outstanding(unproven))
	}
	faults.Fail()
	b.Close(t.Context())
	if n := b.outstanding(unproven); n != 0 {
		t.Errorf("%d outstanding", n)
	}
}
