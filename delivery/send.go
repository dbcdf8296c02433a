package delivery

import (
	"errors"
	"time"

	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
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

// Send sends the email to its only recipient, who is charged before if Charge has not. The error is an *Error.
func (a *Attempt) Send(q Send) (Result, error) {
	if a.state == handedOver {
		return Result{}, a.mayHaveLeft(q, errUnknown)
	}
	if len(a.charges) == 0 {
		if _, err := a.Charge(q); err != nil {
			return Result{}, err
		}
	}
	c := a.charges[0]
	result := Result{ID: c.id, Decision: c.decision}
	e := a.end(a.send(c, &result))
	switch {
	case e == nil:
		return result, nil
	case errors.Is(e, errTaken):
		return Result{}, a.mayHaveLeft(q, errTaken)
	}
	e.Result = result
	return Result{}, e
}

// send sends an email that is charged. A panic is an error as any other, or its charge would stay.
func (a *Attempt) send(c *charge, result *Result) (err error) {
	defer recovered.Into(&err)
	if c.decision.Delay > 0 {
		c.decided()
	}
	if err := a.wait(a.ctx); err != nil {
		return err
	}
	if result.ExpiresIn, err = a.issue(c); err != nil {
		return err
	}
	result.Code = c.Mail.Code
	mail, err := a.compose(c)
	if err != nil {
		return err
	}
	result.MessageID = mail.ID
	if err := a.persist(a.ctx); err != nil {
		return err
	}
	c.decided()
	err = a.transmit(a.ctx, relay.Envelope{From: mail.From, By: c.By}, mail.Bytes)
	result.Receipt = a.receipt
	return err
}

func (q *Send) decided() {
	if q.Decided != nil {
		q.Decided()
	}
}

// issue makes a code, unless the caller did, and keeps with it what it returns once it is right. Both are before the
// email leaves: the visitor may be quick. It returns how long the code is valid.
func (a *Attempt) issue(c *charge) (expiresIn int64, err error) {
	codes := a.service.o.Codes
	n := verify.Note{Send: c.id, Whose: c.Traits.Caller}
	n.Text, n.Life = c.Rules.Unverified(c.decision.Charges)
	c.noted = n.Text != ""
	switch {
	case c.Mail.Code == "" && !c.Linked:
		expiresIn = codes.Lifetime()
		c.code, err = codes.Issue(a.ctx, recipient(c.Mail.To, c.Purpose), n)
		c.Mail.Code, c.Mail.ExpiresInMS = c.code, expiresIn
	case c.noted:
		err = codes.Note(a.ctx, c.Mail.To.Key(), n)
	}
	return expiresIn, err
}

// compose makes the email.
func (a *Attempt) compose(c *charge) (message.Message, error) {
	_, span := trace.Start(a.ctx, "compose")
	defer span.End("")
	o, mail := &a.service.o, c.Mail
	mail.NowMS = o.Now()
	mail.ID = o.Proofs.Make(c.id, mail.NowMS, mail.To)
	mail.Fields = o.Proofs.Fields([]string{mail.ID})
	if c.Composer.HasNotMe(mail.Template) {
		mail.NotMe = o.NotMe.Make(c.Traits, mail.NowMS)
	}
	return c.Composer.Compose(mail)
}

// mayHaveLeft returns the answer about an email that another attempt under the key has handed over,
// or may have. If the rules cannot be asked, there is no answer to keep.
func (a *Attempt) mayHaveLeft(q Send, why error) error {
	d, err := q.Rules.Peek(a.ctx, q.Traits)
	if err != nil {
		return failure(err)
	}
	e := &Error{Kind: Unknown, Result: Result{Decision: d}, Err: why}
	if a.state == handedOver { // and its charge, which is not known, stays
		e.Result.ID = a.claim.lease.AdmissionID()
		a.charges, a.state = []*charge{{Send: q, id: e.Result.ID, claim: a.claim, final: true}}, ended
	}
	return e
}
