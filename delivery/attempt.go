package delivery

import (
	"context"
	"slices"
	"sync"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
)

// state is how far an attempt has come.
//
//	open ──► handedOver ──► ended
//	  └───────────────────────▲
type state int8

const (
	open       state = iota // recipients may be charged
	handedOver              // the email may leave, or may have left in an earlier attempt
	ended                   // each charge is final or refunded
)

// Attempt is one email, from its first charge to its outcome. Its recipients are charged one by one, and it leaves to all
// of them or to none. It is used by one goroutine.
type Attempt struct {
	service   *Service
	ctx       context.Context                 // of the request
	durable   func(ctx context.Context) error // waits until the leases, the charges and the code are
	requestID string
	state     state
	charges   []*charge
	receipt   relay.Receipt

	claim    *claim      // of the only recipient, from the beginning; nil: none
	previous throttle.ID // of an attempt that was killed before it handed over
	degraded bool        // begun without the records that are shared with other nodes
}

// Attempt begins an email whose recipients are charged within ctx. The id of the request is for the log.
func (s *Service) Attempt(ctx context.Context, requestID string) *Attempt {
	ctx, durable := cache.Batch(ctx)
	return &Attempt{service: s, ctx: ctx, durable: durable, requestID: requestID}
}

// Begin begins an email to one recipient under a key. It returns an attempt, or the answer to an earlier one, or an
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
	a.claim, a.previous, a.degraded = k, o.Previous, o.Degraded
	return a, nil, nil
}

// Charge charges a recipient, and another one each time. After an error, which is an *Error, it is not charged, and the
// key of the attempt is free.
func (a *Attempt) Charge(q Send) (Result, error) {
	if a.state == handedOver {
		return Result{}, nil
	}
	c := &charge{Send: q, id: throttle.NewID(), claim: a.claim}
	if a.claim != nil {
		c.id = a.claim.lease.AdmissionID()
	}
	if err := a.take(c); err != nil {
		e := failure(err)
		if e.Kind != Limited {
			e.Result.ID = c.id
		}
		if a.claim != nil {
			a.state = ended
		}
		if c.owes() { // the store failed just now
			a.service.refunds.later(a.service.refund(c, e.Kind))
		} else if c.claim != nil {
			a.service.refunds.now(&refund{claim: c.claim})
		}
		return Result{}, e
	}
	a.charges = append(a.charges, c)
	return Result{ID: c.id, Decision: c.decision}, nil
}

// Recipient is one who is charged.
type Recipient struct {
	address.Address
	Result
}

// Recipients are those who were charged, in this order.
func (a *Attempt) Recipients() []Recipient {
	all := make([]Recipient, len(a.charges))
	for i, c := range a.charges {
		all[i] = Recipient{c.Mail.To, Result{ID: c.id, Decision: c.decision}}
	}
	return all
}

func (a *Attempt) find(to address.Address) int {
	return slices.IndexFunc(a.charges, func(c *charge) bool { return c.Mail.To == to })
}

// Claim asks whether the email was handed over to a charged recipient before, under a name that a repeat has too. It
// returns the answer that Finish kept, or nil if it is to be sent, or an *Error.
func (a *Attempt) Claim(requests *idempotency.Requests, to address.Address, name idempotency.Name) (*idempotency.Answer, error) {
	k, o, err := begin(a.ctx, requests, a.requestID, name, idempotency.Fingerprint{})
	switch {
	case err != nil:
		return nil, err
	case o.State == idempotency.Replay:
		return &o.Answer, nil
	case o.State == idempotency.Unknown:
		return nil, &Error{Kind: Unknown, Err: errUnknown}
	}
	a.charges[a.find(to)].claim = k
	return nil, nil
}

// Withdraw refunds one recipient, who does not get the email.
func (a *Attempt) Withdraw(to address.Address) {
	if i := a.find(to); i >= 0 {
		one := a.charges[i]
		a.charges = slices.Delete(a.charges, i, i+1)
		a.service.refunds.now(a.service.refund(one, Unavailable))
	}
}

// MayHaveLeft reports whether the email may have left in an earlier attempt.
func (a *Attempt) MayHaveLeft() bool { return a.state == handedOver }

// Stays reports, at the end, whether a recipient stays charged: the email left, may have, or was refused for good.
func (a *Attempt) Stays() bool {
	return slices.ContainsFunc(a.charges, func(c *charge) bool { return c.final })
}

// Answered reports whether the outcome is final and its answer is to be kept, for Finish.
func (a *Attempt) Answered() bool {
	return slices.ContainsFunc(a.charges, func(c *charge) bool { return c.final && c.claim != nil })
}

// Finish keeps the answer to repeats for the recipients who stay charged, in the background if that fails now.
func (a *Attempt) Finish(answer idempotency.Answer) {
	a.each(func(c *charge) {
		if c.final && c.claim != nil {
			a.service.refunds.now(&refund{claim: c.claim, answer: &answer})
		}
	})
}

// Receipt is what the relay said when it accepted the email.
func (a *Attempt) Receipt() relay.Receipt { return a.receipt }

// Refuse ends an attempt whose request is not valid any more and frees its key. It returns the
// refusal, or Storage if other nodes cannot be asked whether they sent the email.
func (a *Attempt) Refuse(refusal error) error {
	a.Abandon()
	if a.degraded {
		return &Error{Kind: Storage, Err: errDegraded}
	}
	return refusal
}

// Abandon refunds an email that is not to leave, and frees its keys. After its outcome it does nothing.
func (a *Attempt) Abandon() {
	if a.state != open {
		return
	}
	if len(a.charges) == 0 && a.claim != nil {
		a.service.refunds.now(&refund{claim: a.claim})
	}
	a.end(&Error{Kind: Unavailable})
}

// end ends an attempt by its error, if there is one, and returns it as an *Error. Who is not charged for what came of
// the email is refunded before it is answered, if the store can be written.
func (a *Attempt) end(err error) *Error {
	var e *Error
	if err != nil {
		e = failure(err)
	}
	left := a.state == handedOver
	a.state = ended
	a.each(func(c *charge) {
		if c.final = e == nil || c.stays(e, left); !c.final {
			a.service.refunds.now(a.service.refund(c, e.Kind))
		}
	})
	return e
}

// each does something for all charges at once, as each may have to wait for a store that does not answer.
func (a *Attempt) each(do func(*charge)) {
	if len(a.charges) == 1 {
		do(a.charges[0])
		return
	}
	var all sync.WaitGroup
	for _, c := range a.charges {
		all.Go(func() { do(c) })
	}
	all.Wait()
}
