// Package bounce applies what email providers report about the emails that they were given: it suppresses
// the recipient of an email that mailgate sent. Package hooks reads the reports.
package bounce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

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

// MaxAge is for how many milliseconds a provider may repeat an event under a token.
const MaxAge = 3 * 24 * 60 * 60 * 1000

// Receiver applies events. It needs all its fields.
type Receiver struct {
	Suppressions *suppression.List
	Proofs       *proof.Proofs
	Records      keyed.Store // of the tokens of Mailgun that were used
	// WithoutProof has bounces applied that came without a proof, also those of other senders in the account.
	WithoutProof bool
	Now          func() int64
}

// Apply suppresses the recipient of an event, if the event says so and is proved. An error is
// throttle.ErrUnavailable: the event is to be repeated.
func (r *Receiver) Apply(ctx context.Context, identity address.Identity, provider string, e Event) (Outcome, address.Address, error) {
	if e.Token != "" {
		var first []byte // what the token came with
		sum := sha256.Sum256([]byte(e.Text))
		_, err := r.Records.Update(ctx, "token "+e.Token, func(old []byte, now int64) ([]byte, int64) {
			if first = bytes.Clone(old); first == nil {
				first = sum[:]
			}
			return first, now + 2*MaxAge // which a value that stays the same does not get
		})
		if err != nil {
			return Unproven, address.Address{}, fmt.Errorf("recording a bounce: %w", err)
		}
		if !bytes.Equal(first, sum[:]) {
			return Unproven, address.Address{}, nil
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
	event := suppression.Event{Name: name, Life: recordLife}
	if added, err := r.Suppressions.AddFor(ctx, event, to, reason, provider); err != nil || !added {
		return Repeated, to, err
	}
	return Applied, to, nil
}

// recordLife is longer than the proof of an event, so that none is ever applied twice.
const recordLife = proof.Life + 24*60*60*1000
