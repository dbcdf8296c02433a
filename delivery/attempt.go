package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// state is how far an attempt has come.
//
//	begun ──► charged ──► handedOver ──► answered
//	  │         │ │           │             ▲
//	  │         │ └───────────┼─────────────┘  rejected before the text was sent
//	  └─────────┴─────────────┴──► freed       certainly never left
type state int8

const (
	begun      state = iota // nothing is charged
	charged                 // the rules have admitted the send
	handedOver              // the email may leave, unless that could not be recorded
	answered                // the outcome is final, and its answer is to be kept
	freed                   // the charge is refunded, and the key is free after it
)

// transitions are all that there are.
var transitions = map[state][]state{
	begun:      {charged, freed},
	charged:    {handedOver, answered, freed},
	handedOver: {answered, freed},
}

// Attempt is one send, from its beginning to its outcome. It is used by one goroutine, for one
// Send.
type Attempt struct {
	service   *Service
	ctx       context.Context                 // of the request
	durable   func(ctx context.Context) error // waits until the lease, the charge and the code are
	requestID string
	state     state
	id        throttle.ID // of what is charged, and of the email

	claim    *claim      // nil: none
	previous throttle.ID // of an attempt that was killed before it handed over
	alone    bool        // begun without the records that are shared with other nodes

	charge charge
}

// Attempt begins a send without a key, which ends with ctx at the latest. The id of the request is
// for the log.
func (s *Service) Attempt(ctx context.Context, requestID string) *Attempt {
	ctx, durable := cache.Batch(ctx)
	return &Attempt{service: s, ctx: ctx, durable: durable, requestID: requestID, id: throttle.NewID()}
}

// Begin begins a send under a key. It returns an attempt, or the answer to an earlier one, or an
// *Error.
func (s *Service) Begin(ctx context.Context, requestID string, name idempotency.Name, body idempotency.Fingerprint) (*Attempt, *idempotency.Answer, error) {
	a := s.Attempt(ctx, requestID)
	k, o, err := begin(a.ctx, s.o.Requests, requestID, name, body)
	switch {
	case err != nil:
		return nil, nil, err
	case o.State == idempotency.Replay:
		return nil, &o.Answer, nil
	case o.State == idempotency.Unknown:
		a.state = handedOver
	}
	a.id, a.claim, a.previous, a.alone = o.Lease.AdmissionID(), k, o.Previous, o.Alone
	return a, nil, nil
}

func (a *Attempt) move(to state) {
	if !slices.Contains(transitions[a.state], to) {
		panic(fmt.Sprintf("delivery: an attempt moves from %d to %d", a.state, to))
	}
	a.state = to
}

// MayHaveLeft reports whether the email of the attempt may have left.
func (a *Attempt) MayHaveLeft() bool { return a.state == handedOver || a.state == answered }

// Answered reports whether the outcome is final and its answer is to be kept, for Finish.
func (a *Attempt) Answered() bool { return a.claim != nil && a.state == answered }

// Finish keeps the answer for retries under the key, in the background if that fails now.
func (a *Attempt) Finish(answer idempotency.Answer) {
	if a.Answered() {
		a.service.refunds.now(&refund{claim: a.claim, answer: &answer})
	}
}

// Refuse ends an attempt whose request is not valid any more and frees its key. It returns the
// refusal, or Storage if other nodes cannot be asked whether they sent the email.
func (a *Attempt) Refuse(refusal error) error {
	a.Abandon()
	if a.alone {
		return &Error{Kind: Storage, Err: errAlone}
	}
	return refusal
}

// Abandon refunds an email that is not to leave, and frees its key. After Send it does nothing.
func (a *Attempt) Abandon() {
	undone := &refund{claim: a.claim}
	switch a.state {
	case charged:
		undone = a.service.refund(&a.charge, Unavailable)
	case begun:
	default:
		return
	}
	a.move(freed)
	a.service.refunds.now(undone)
}

// handOver records that the email may leave from now on.
func (a *Attempt) handOver() error {
	a.move(handedOver)
	return a.claim.handOver(a.ctx)
}
