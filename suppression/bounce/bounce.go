// Package bounce takes what email providers report about the emails that they were given: it proves that a
// call is the provider's, reads its events into one form, and suppresses the recipient of an email that
// mailgate sent.
package bounce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/suppression"
)

// Kind is what happened to an email.
type Kind string

// The kinds.
const (
	Hard      Kind = "hard" // there is no such address
	Soft      Kind = "soft"
	Complaint Kind = "complaint"
	Other     Kind = "other" // what is not known here, such as a delivery
)

// Kinds are all kinds.
var Kinds = []Kind{Hard, Soft, Complaint, Other}

// Reasons are those for which a kind suppresses its recipient.
var Reasons = map[Kind]suppression.Reason{Hard: suppression.HardBounce, Complaint: suppression.Complaint}

// Event is what a provider reports about one recipient.
type Event struct {
	Address string
	Kind    Kind
	Text    string // as it came; somewhere in it is the proof, if the provider returned it
	Token   string // that the provider signs in place of the event; empty if the event is signed
}

// Outcome is what came of an Event.
type Outcome string

// The outcomes.
const (
	Applied  Outcome = "applied"  // the recipient is suppressed
	Repeated Outcome = "repeated" // was so before, by the same event
	Counted  Outcome = "counted"  // changes nothing
	Unproven Outcome = "unproven" // is of no email that mailgate sent or of one of several recipients, or has the token of another event
)

// Hook takes the calls of one provider.
type Hook struct {
	Name    string
	Refused int // the status that ends the provider's retries of a call that is not genuine
	Later   int // the status that asks for a retry, if the provider gives up after a 503

	Source
}

// ErrLater means that a call is to be repeated, as the provider has not answered a question about it.
var ErrLater = errors.New("the call is to be repeated")

// Source is a provider. The only error is ErrLater.
type Source struct {
	// Genuine reports whether a call is from the provider. It waits for nothing.
	Genuine func(header func(string) string, body []byte, now time.Time) (bool, error)
	// Read returns the events of a genuine call, and answers a provider that asks whether the hook is wanted.
	Read func(ctx context.Context, body []byte) ([]Event, error)
}

// providers make a source of a setting.
var providers = map[string]struct {
	refused int
	later   int
	open    func(setting string, client *http.Client) (Source, error)
}{
	"ses":      {http.StatusUnauthorized, 0, openSES},
	"sendgrid": {http.StatusUnauthorized, 0, openSendGrid},
	"mailgun":  {http.StatusNotAcceptable, 0, openMailgun},
	"postmark": {http.StatusForbidden, 0, openPostmark},
	"resend":   {http.StatusUnauthorized, 0, openResend},
	"brevo":    {http.StatusUnauthorized, http.StatusTooManyRequests, openBrevo},
}

// New makes the hook of a provider with its setting. SES uses the client, which is that of the system if nil.
// Errors do not repeat the setting.
func New(name, setting string, client *http.Client) (*Hook, error) {
	p := providers[name]
	s, err := p.open(setting, client)
	if err != nil {
		return nil, err
	}
	return &Hook{name, p.refused, p.later, s}, nil
}

// Receiver applies events. It needs all its fields.
type Receiver struct {
	Suppressions *suppression.List
	Proofs       *proof.Proofs
	Records      keyed.Store // of the events that were applied
	// WithoutProof has bounces applied that came without a proof, also those of other senders in the account.
	WithoutProof bool
	Now          func() int64
}

// Apply suppresses the recipient of an event, if the event says so and is proved. An error is
// throttle.ErrUnavailable: the event is to be repeated.
func (r *Receiver) Apply(ctx context.Context, identity address.Identity, provider string, e Event) (Outcome, address.Address, error) {
	if e.Token != "" {
		sum := sha256.Sum256([]byte(e.Text))
		first, err := r.note(ctx, "token "+e.Token, sum[:], 2*maxAge.Milliseconds())
		if err != nil || first != nil && !bytes.Equal(first, sum[:]) {
			return Unproven, address.Address{}, err
		}
	}
	if e.Kind == Other {
		return Counted, address.Address{}, nil
	}
	to, err := address.Parse(e.Address, identity)
	if err != nil {
		return Unproven, to, nil
	}
	name, other := r.Proofs.Find(e.Text, to, r.Now())
	if name == "" && (other || !r.WithoutProof) {
		return Unproven, to, nil
	}
	reason, suppresses := Reasons[e.Kind]
	if !suppresses {
		return Counted, to, nil
	}
	if name == "" {
		sum := sha256.Sum256([]byte(to.Key() + " " + e.Text))
		name = provider + " " + hex.EncodeToString(sum[:])
	}
	name += " " + string(e.Kind)
	if before, err := r.note(ctx, name, nil, recordLife); err != nil || before != nil {
		return Repeated, to, err
	}
	if _, err = r.Suppressions.Add(ctx, to, reason, provider); err == nil {
		_, err = r.note(ctx, name, []byte{1}, recordLife)
	}
	return Applied, to, err
}

// recordLife is longer than the proof of an event, so that none is ever applied twice.
const recordLife = proof.Life + 24*60*60*1000

// note returns the record of a name, and makes one if there is none.
func (r *Receiver) note(ctx context.Context, name string, record []byte, life int64) (before []byte, err error) {
	_, err = r.Records.Update(ctx, name, func(old []byte, now int64) ([]byte, int64) {
		if before = bytes.Clone(old); before == nil {
			old = record
		}
		return old, now + life // which a value that stays the same does not get
	})
	if err != nil {
		err = fmt.Errorf("recording a bounce: %w", err)
	}
	return before, err
}

// kindOf looks for the first words of an event in a table, for the most of them that are known.
func kindOf(table map[string]Kind, words ...string) Kind {
	for n := len(words); n > 0; n-- {
		if kind, known := table[strings.Join(words[:n], " ")]; known {
			return kind
		}
	}
	return Other
}
