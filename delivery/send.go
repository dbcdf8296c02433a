package delivery

import (
	"errors"
	"time"

	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/verify"
)

// Send is a requested email. Its fields have been validated.
type Send struct {
	Rules    *rules.Set
	Composer *message.Composer
	// Mail needs neither ID nor NowMS. Without a Code one is issued.
	Mail    message.Request
	Purpose string     // of a code that is issued
	Linked  bool       // the email has a link and no code, so none is issued
	Traits  rules.Send // what the rules count by
	By      time.Time  // when the email must be on its way, if it is to leave at all; zero for the attempt's end
	// Decided, if not nil, frees a resource that the send does not need while it waits for a
	// queue or a relay. It may be called more than once.
	Decided func()
}

// Result is an email that a relay has accepted.
type Result struct {
	ID        throttle.ID
	MessageID string
	ExpiresIn int64  // how long an issued code is valid, in milliseconds
	Code      string // in the email
	Decision  rules.Decision
	Receipt   relay.Receipt // of a Send
}

// Charge charges the email, for callers that charge several before they send one. The error is an *Error.
// Send or Abandon follows.
func (a *Attempt) Charge(q Send) error {
	if a.state != begun {
		return nil
	}
	a.charge = charge{to: q.Mail.To, rules: q.Rules, traits: q.Traits, id: a.id, purpose: q.Purpose, alone: a.alone, claim: a.claim,
		composer: q.Composer, template: q.Mail.Template}
	return a.take()
}

// Send sends the email, and charges it before if Charge has not. The error is an *Error.
func (a *Attempt) Send(q Send) (Result, error) {
	if a.state == handedOver {
		return Result{}, a.mayHaveLeft(q, errUnknown)
	}
	if err := a.Charge(q); err != nil {
		return Result{}, err
	}
	result := Result{ID: a.id, Decision: a.charge.decision}
	if err := a.send(q, &result); err != nil {
		return Result{}, a.settle(q, result, err)
	}
	a.move(answered)
	return result, nil
}

// send sends an email that is charged. A panic is an error as any other, or its charge would stay.
func (a *Attempt) send(q Send, result *Result) (err error) {
	defer recovered.Into(&err)
	if result.Decision.Delay > 0 {
		q.decided()
	}
	if err := a.service.wait(a.ctx, result.Decision.Delay); err != nil {
		return err
	}
	_, span := trace.Start(a.ctx, "compose")
	mail, err := a.compose(q, result)
	span.End("")
	if err != nil {
		return err
	}
	if err := a.durable(a.ctx); err != nil {
		return throttle.Unavailable("keeping what was charged", err)
	}
	q.decided()
	result.Receipt, err = a.service.handOver(a.ctx, relay.Envelope{From: mail.From, To: []address.Address{mail.To}, By: q.By}, mail.Bytes, a.handOver)
	return err
}

func (q *Send) decided() {
	if q.Decided != nil {
		q.Decided()
	}
}

// take asks the rules and charges them. What may be charged although nothing is sent is refunded in
// the background, and the key is free after that.
func (a *Attempt) take() error {
	if a.previous != (throttle.ID{}) {
		c := &a.charge
		var err error
		if c.owed, err = c.rules.Release(a.ctx, c.rules.ExactCharges(c.traits, a.previous)); err != nil {
			return a.notAdmitted(failure(err))
		}
		if c.critical() {
			if err := a.service.takeBack(a.ctx, c.to, a.previous); err != nil {
				return a.notAdmitted(failure(err))
			}
		}
	}
	if err := a.service.take(a.ctx, &a.charge); err != nil {
		return a.notAdmitted(err)
	}
	a.move(charged)
	return nil
}

func (a *Attempt) notAdmitted(e *Error) error {
	if e.Kind != Limited {
		e.Result.ID = a.id
	}
	a.move(freed)
	if a.charge.owes() { // the store failed just now
		a.service.refunds.later(a.service.refund(&a.charge, e.Kind))
	} else if a.claim != nil {
		a.service.refunds.now(&refund{claim: a.claim})
	}
	return e
}

// compose makes the email, with a code unless the caller gave one.
func (a *Attempt) compose(q Send, result *Result) (message.Message, error) {
	mail := q.Mail
	mail.NowMS = a.service.o.Now()
	mail.ID = a.service.o.Proofs.Make(a.id, mail.NowMS, mail.To)
	issue := mail.Code == "" && !q.Linked
	if err := a.note(issue, result); err != nil {
		return message.Message{}, err
	}
	if issue {
		mail.Code, mail.ExpiresInMS = a.charge.code, result.ExpiresIn
	}
	if q.Composer.HasNotMe(mail.Template) {
		mail.NotMe = a.service.o.NotMe.Make(q.Traits, mail.NowMS)
	}
	composed, err := q.Composer.Compose(mail)
	result.MessageID, result.Code = composed.ID, mail.Code
	composed.Bytes = append([]byte(a.service.o.Proofs.Fields([]string{mail.ID})), composed.Bytes...)
	return composed, err
}

// note makes a code, unless the caller did, and keeps with it what it returns once it is right. Both are before the
// email leaves: the visitor may be quick.
func (a *Attempt) note(issue bool, result *Result) (err error) {
	codes, c := a.service.o.Codes, &a.charge
	n := verify.Note{Send: a.id, Whose: c.traits.Caller}
	n.Text, n.Life = c.rules.Unverified(c.decision.Charges)
	c.noted = n.Text != ""
	switch {
	case issue:
		result.ExpiresIn = codes.Lifetime()
		c.code, err = codes.Issue(a.ctx, recipient(c.to, c.purpose), n)
	case c.noted:
		err = codes.Note(a.ctx, c.to.Key(), n)
	}
	return err
}

// settle ends a send that was charged and not accepted. What certainly never left is refunded
// before it is answered, if the store can be written.
func (a *Attempt) settle(q Send, result Result, err error) error {
	e := failure(err)
	e.Result = result
	if a.charge.stays(e, a.state == handedOver) {
		a.move(answered)
		return e
	}
	a.move(freed)
	a.service.refunds.now(a.service.refund(&a.charge, e.Kind))
	if errors.Is(err, errTaken) {
		return a.mayHaveLeft(q, errTaken)
	}
	return e
}

// mayHaveLeft returns the answer about an email that another attempt under the key has handed over,
// or may have. If the rules cannot be asked, there is no answer to keep.
func (a *Attempt) mayHaveLeft(q Send, why error) error {
	d, err := q.Rules.Peek(a.ctx, q.Traits)
	if err != nil {
		return failure(err)
	}
	e := &Error{Kind: Unknown, Result: Result{Decision: d}, Err: why}
	if a.state == handedOver {
		e.Result.ID = a.id
		a.move(answered)
	}
	return e
}
