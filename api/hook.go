package api

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
)

// accepted is the answer to an email that was sent. Others have words for the visitor.
var accepted = idempotency.Answer{Status: fiber.StatusOK}

// identifyHook notes whether a request is a genuine call of a hook. It comes before the requests without a key are
// bounded, so that a flood of those does not keep calls out.
func (s *Server) identifyHook(r *request) {
	i := slices.IndexFunc(s.with.Hooks, func(hook hooks.Hook) bool { return r.c.Path() == hookPath(hook) })
	if i < 0 {
		return
	}
	r.hook, r.call = s.with.Hooks[i], &hooks.Call{
		Header: func(name string) string { return r.c.Get(name) }, Body: r.c.Request().Body(),
		Now: time.UnixMilli(s.with.Now()), Began: r.Began, Identity: s.with.Identity,
	}
	if r.origin = s.prove(r.hook, r.call); r.origin == nil {
		r.keyOpens = systems
	}
}

// prove asks a hook whether a call is genuine. Anyone can make it check a signature, so few are checked at a time.
func (s *Server) prove(hook hooks.Hook, call *hooks.Call) error {
	select {
	case s.checks <- struct{}{}:
	case <-time.After(checkPatience):
		return hooks.ErrLater
	}
	defer func() { <-s.checks }()
	return hook.Genuine(call)
}

// checkPatience is how long a call waits for its check. After that it is to be repeated.
const checkPatience = time.Second

func hookPath(hook hooks.Hook) string { return "/hooks/" + hook.Name() }

// takeHook handles the calls of hooks.
func (s *Server) takeHook(c *fiber.Ctx) (err error) {
	r := requestOf(c)
	switch {
	case errors.Is(r.origin, hooks.ErrLater):
		err = repeat(r.origin)
	case r.keyOpens != systems:
		err = &problem{kind: unauthorized, detail: "The call has not the secret of this hook, or no signature by it from the last five minutes."}
	default:
		r.Key, r.Door = r.hook.Name(), r.hook.Name()
	}
	if hook, reports := r.hook.(hooks.Reporter); reports {
		if err == nil {
			err = s.takeReport(r, hook)
		}
		return answerReport(r, hook, err)
	}
	if err != nil {
		return err
	}
	hook := r.hook.(hooks.Sender)
	result := s.call(r, hook)
	code, contentType, body := hook.Answer(result.Status, string(result.Body))
	c.Status(code)
	return respondRaw(c, contentType, body)
}

// call sends the emails of a call: it charges all or none, and then sends them in order up to the first that
// fails. Those after it are refunded.
func (s *Server) call(r *request, hook hooks.Sender) idempotency.Answer {
	emails, err := s.readCall(r, hook)
	if err != nil {
		return s.answerVisitor(r, err)
	}
	attempts := make([]*delivery.Attempt, len(emails)) // nil: sent by an earlier try
	defer func() {
		for _, attempt := range attempts {
			if attempt != nil {
				attempt.Abandon()
			}
		}
	}()
	for i, email := range emails {
		s.isAbout(r, &email)
		attempt, first, err := s.beginEmail(r, i, !email.By.IsZero())
		if first != nil {
			r.What = ledger.Replayed
			if r.Replayed = true; first.Status != accepted.Status {
				return *first
			}
			continue
		}
		if attempts[i] = attempt; err == nil {
			_, err = attempt.Charge(email)
		}
		if err != nil {
			return s.answerVisitor(r, s.notSent(r, email.Traits, err))
		}
	}
	for i, email := range emails {
		if attempts[i] == nil {
			continue
		}
		s.isAbout(r, &email)
		came := accepted
		if result, err := attempts[i].Send(email); err != nil {
			came = s.answerVisitor(r, s.notSent(r, email.Traits, err))
		} else {
			s.noteSent(r, &result)
		}
		attempts[i].Finish(came) // for the next try of the call
		if came.Status != accepted.Status {
			return came
		}
	}
	return accepted
}

// relayAnswer is how long a relay may take to answer an email that was on its way in time.
const relayAnswer = time.Second

// readCall reads the emails of a call, adds what a hook does not know, and checks them.
func (s *Server) readCall(r *request, hook hooks.Sender) (emails []delivery.Send, err error) {
	if err := checkEncoding(r.c); err != nil {
		return nil, err
	}
	emails, by, err := hook.Emails(r.call)
	if err != nil {
		return nil, &problem{kind: invalid, detail: err.Error(), cause: err}
	}
	for i := range emails {
		email := &emails[i]
		email.By, email.Traits.Purpose = by, email.Mail.Template
		email.Traits.Unverifiable = true // the system checks its own codes, and does not say what came of it
		if wrong := s.complete(r, email); len(wrong) > 0 {
			return nil, &problem{kind: invalid, detail: wrong[0].Error(), cause: wrong[0]}
		}
	}
	end := by.Add(relayAnswer)
	if by.IsZero() {
		end = r.Began.Add(s.with.SendDeadline)
	}
	return emails, s.enter(r, systems, end)
}

// beginEmail begins an email of a call, which may be repeated. While an earlier try is in progress it waits for
// its answer, as the system may hear of this one alone.
func (s *Server) beginEmail(r *request, number int, repeated bool) (*delivery.Attempt, *idempotency.Answer, error) {
	if !repeated {
		return s.with.Delivery.Attempt(r.ctx, r.RequestID), nil, nil
	}
	event := s.names.request("POST /hooks/"+r.Key, r.c.Request().Body())
	name := idempotency.Name{Caller: r.Key, Key: fmt.Sprintf("%x/%d", event, number)}
	for waited := false; ; waited = true {
		attempt, first, err := s.with.Delivery.Begin(r.ctx, r.RequestID, name, event)
		if waited && err != nil && r.ctx.Err() != nil {
			return nil, nil, &delivery.Error{Kind: delivery.Unknown, Err: errEarlierTry}
		}
		if ledger.Of(err) != ledger.InFlight {
			return attempt, first, err
		}
		front.Pause(r.ctx, inFlightPause)
	}
}

const inFlightPause = 50 * time.Millisecond

var errEarlierTry = errors.New("an earlier try was still in progress")

// answerVisitor notes an error for the log, and says it to a visitor. One whose email may have left is not told of an
// error, since the system would then forget the code in it.
func (s *Server) answerVisitor(r *request, err error) idempotency.Answer {
	p := problemOf(err)
	r.note(p)
	status, words := p.kind.status, "The email could not be sent. Try again in a minute."
	switch {
	case p.kind == deliveryUnknown:
		return accepted
	case p.kind == quotaExceeded:
		words = p.report.Words()
	case p.kind == recipientRejected, p.kind == recipientSuppressed, p.kind == recipientDenied:
		words = "This address does not accept the email."
	case status < fiber.StatusInternalServerError:
		words = cmp.Or(p.detail, p.kind.detail)
	}
	return idempotency.Answer{Status: status, Body: []byte(words)}
}
