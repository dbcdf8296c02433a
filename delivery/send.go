package delivery

import (
	"errors"
	"slices"
	"time"

	"github.com/mailgate/mailgate/internal/recovered"
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
	Traits  rules.Send // what the rules count by
	// Decided, if not nil, frees a resource that the send does not need while it waits for a
	// queue or a relay. It may be called more than once.
	Decided func()
}

// Result is an email that a relay has accepted.
type Result struct {
	ID        throttle.ID
	MessageID string
	ExpiresIn int64 // how long an issued code is valid, in milliseconds
	Decision  rules.Decision
}

// Send sends the email. The error is an *Error.
func (a *Attempt) Send(q Send) (Result, error) {
	if a.state == handedOver {
		return Result{}, a.mayHaveLeft(q, errUnknown)
	}
	result, err := a.take(q)
	if err != nil {
		return Result{}, err
	}
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
	mail, err := a.compose(q, result)
	if err != nil {
		return err
	}
	if err := a.durable(a.ctx); err != nil {
		return throttle.Unavailable("keeping what was charged", err)
	}
	q.decided()
	return a.mail(mail)
}

func (q *Send) decided() {
	if q.Decided != nil {
		q.Decided()
	}
}

// take asks the rules and charges them. What may be charged although nothing is sent is refunded in
// the background, and the key is free after that.
func (a *Attempt) take(q Send) (Result, error) {
	if a.previous != (throttle.ID{}) {
		left, err := q.Rules.Release(a.ctx, q.Rules.ExactCharges(q.Traits, a.previous))
		if err != nil {
			return Result{}, a.notAdmitted(q, left, failure(err))
		}
	}
	began := time.Now()
	d, err := a.charge(q)
	a.service.o.Metrics.Decisions.Observe(time.Since(began).Seconds())
	if err != nil {
		return Result{}, a.notAdmitted(q, d.Charges, failure(err))
	}
	if a.alone {
		d.Degraded, d.Verdict.Degraded = true, true
	}
	if !d.Allowed {
		return Result{}, a.notAdmitted(q, d.Charges, &Error{Kind: Limited, Result: Result{Decision: d}})
	}
	a.move(charged)
	a.charges = d.Charges
	return Result{ID: a.id, Decision: d}, nil
}

// charge charges the rules. After a panic it is not known which of them are charged.
func (a *Attempt) charge(q Send) (d rules.Decision, err error) {
	defer func() {
		if value := recover(); value != nil {
			d.Charges, err = q.Rules.ExactCharges(q.Traits, a.id), recovered.From(value)
		}
	}()
	return q.Rules.Take(a.ctx, q.Traits, a.id)
}

func (a *Attempt) notAdmitted(q Send, owed []rules.Charge, e *Error) error {
	if e.Kind != Limited {
		e.Result.ID = a.id
	}
	a.move(freed)
	if len(owed) > 0 { // the store failed just now
		a.service.refunds.later(a.refund(q, owed))
	} else if a.keyed {
		a.service.refunds.now(&refund{attempt: a})
	}
	return e
}

// compose makes the email, with a code unless the caller gave one.
func (a *Attempt) compose(q Send, result *Result) (message.Message, error) {
	mail := q.Mail
	mail.ID, mail.NowMS = a.id.String(), a.service.o.Now()
	if mail.Code == "" {
		if err := a.issue(q, result); err != nil {
			return message.Message{}, err
		}
		mail.Code, mail.ExpiresInMS = a.code, result.ExpiresIn
	}
	composed, err := q.Composer.Compose(mail)
	result.MessageID = composed.ID
	return composed, err
}

// mail hands the email to a relay.
func (a *Attempt) mail(mail message.Message) error {
	began := time.Now()
	tx, err := a.service.o.Relay.Begin(a.ctx, mail.From, mail.To)
	if err == nil {
		defer tx.Abort() // does nothing after Commit
		if err := a.handOver(); err != nil {
			return err
		}
		_, err = tx.Commit(mail.Bytes)
	}
	a.service.o.Metrics.Relays.WithLabelValues(outcome(err)).Observe(time.Since(began).Seconds())
	return err
}

// issue makes a code, which is valid before the email leaves: the visitor may be quick.
func (a *Attempt) issue(q Send, result *Result) (err error) {
	codes := a.service.o.Codes
	result.ExpiresIn = codes.Lifetime()
	a.code, err = codes.Issue(a.ctx, recipient(q.Mail.To, q.Purpose))
	return err
}

// settle ends a send that was charged and not accepted. What certainly never left is refunded
// before it is answered, if the store can be written.
func (a *Attempt) settle(q Send, result Result, err error) error {
	e := failure(err)
	e.Result = result
	if a.stays(e) {
		a.move(answered)
		return e
	}
	owed := a.charges
	if e.Kind == Deferred { // or a visitor could let the relay ask about recipients without end
		owed = slices.DeleteFunc(owed, func(c rules.Charge) bool { return c.By == rules.ByClientIP })
	}
	a.move(freed)
	a.service.refunds.now(a.refund(q, owed))
	if errors.Is(err, errTaken) {
		return a.mayHaveLeft(q, errTaken)
	}
	return e
}

// stays reports whether the send stays charged: the relay refused the email for good, or the
// email may have left. An error that is not known proves nothing.
func (a *Attempt) stays(e *Error) bool {
	switch e.Kind {
	case Rejected:
		return true
	case Unknown, Failed:
		return a.state == handedOver && !errors.Is(e, relay.ErrUnsendable) && !errors.Is(e, errTaken)
	}
	return false
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
