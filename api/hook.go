package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/mailer/address"
)

// Hook is a door for a system that has a URL called in place of sending an email. Its calls come to
// POST /hooks/ and its name.
type Hook interface {
	// Name is also the hook's door in metrics, and its caller in logs and rules.
	Name() string
	// Genuine reports whether a call is from the system.
	Genuine(header func(name string) string, body []byte, now time.Time) bool
	// Read returns the emails that a call asks for, all or none of which are charged. The call arrived when it
	// began. A system that tries again, with the same body, waits until a time: by then the emails have to be on
	// their way. Zero is for one that calls once. An error is for the log and the system, and holds no address.
	Read(body []byte, identity address.Identity, began time.Time) (emails []delivery.Send, by time.Time, err error)
	// Answer makes the answer to a call: of 200 if the emails were sent or may have been, or another HTTP
	// status and words for the visitor.
	Answer(status int, words string) (code int, contentType string, body []byte)
}

// accepted is the answer to an email that was sent. Others have words for the visitor.
var accepted = idempotency.Answer{Status: fiber.StatusOK}

// identifyHook notes which hook a genuine call is for. It comes before the requests without a key are
// bounded, so that a flood of those does not keep calls out.
func (s *Server) identifyHook(c *fiber.Ctx, r *request) {
	for _, hook := range s.with.Hooks {
		if c.Path() == hookPath(hook) && hook.Genuine(func(name string) string { return c.Get(name) }, c.Request().Body(), time.UnixMilli(s.with.Now())) {
			r.shown = systems
		}
	}
}

func hookPath(hook Hook) string { return "/hooks/" + hook.Name() }

// answerHook handles the calls of a hook.
func (s *Server) answerHook(hook Hook) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := requestOf(c)
		if r.shown != systems {
			return &problem{kind: unauthorized, detail: "The call has not the secret of this hook, or no signature by it from the last five minutes."}
		}
		r.key, r.door = hook.Name(), hook.Name()
		result := s.call(r, hook)
		code, contentType, body := hook.Answer(result.Status, string(result.Body))
		c.Status(code)
		return respondRaw(c, contentType, body)
	}
}

// call sends the emails of a call: it charges all or none, and then sends them in order up to the first that
// fails. Those after it are refunded.
func (s *Server) call(r *request, hook Hook) idempotency.Answer {
	emails, err := s.readCall(r, hook)
	if err != nil {
		return s.told(r, err)
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
		r.isAbout(&email)
		attempt, first, err := s.beginEmail(r, i, !email.By.IsZero())
		if first != nil {
			s.metrics.sent(r, outcomeReplayed)
			if r.replayed = true; first.Status != accepted.Status {
				return *first
			}
			continue
		}
		if attempts[i] = attempt; err == nil {
			err = attempt.Charge(email)
		}
		if err != nil {
			return s.told(r, s.notSent(r, email.Traits, err))
		}
	}
	for i, email := range emails {
		if attempts[i] == nil {
			continue
		}
		if came := s.sendEmail(r, attempts[i], email); came.Status != accepted.Status {
			return came
		}
		if i < len(emails)-1 { // the log line is about the last one
			s.keepPart(r)
		}
	}
	return accepted
}

// relayAnswer is how long a relay may take to answer an email that was on its way in time.
const relayAnswer = time.Second

// readCall reads the emails of a call, adds what a hook does not know, and checks them.
func (s *Server) readCall(r *request, hook Hook) (emails []delivery.Send, err error) {
	if err := checkEncoding(r.c); err != nil {
		return nil, err
	}
	emails, by, err := hook.Read(r.c.Request().Body(), s.with.Identity, r.began)
	if err != nil {
		return nil, &problem{kind: invalid, detail: err.Error(), cause: err}
	}
	for i := range emails {
		email, traits := &emails[i], &emails[i].Traits
		email.Rules, email.Composer, email.Decided, email.By = r.live.Rules, r.live.Composer, r.decided, by
		traits.Mailbox, traits.Caller = email.Mail.To.Key(), r.key
		traits.Template, traits.Purpose = email.Mail.Template, email.Mail.Template
		traits.Unverifiable = true // the system checks its own codes, and does not say what came of it
		if wrong := s.delivery.Check(*email); len(wrong) > 0 {
			return nil, &problem{kind: invalid, detail: wrong[0].Error(), cause: wrong[0]}
		}
		s.warnOfInside(r, *traits)
		r.visitor = traits.Client
	}
	end := by.Add(relayAnswer)
	if by.IsZero() {
		end = r.began.Add(s.with.SendDeadline)
	}
	r.ctx, r.cancel = context.WithDeadline(s.traced(r, systems), end)
	return emails, s.enter(r.c, r, systems)
}

// beginEmail begins an email of a call, which may be repeated. While an earlier try is in progress it waits for
// its answer, as the system may hear of this one alone.
func (s *Server) beginEmail(r *request, number int, repeated bool) (*delivery.Attempt, *idempotency.Answer, error) {
	if !repeated {
		return s.delivery.Attempt(r.ctx, r.id), nil, nil
	}
	event := s.names.request("POST /hooks/"+r.key, r.c.Request().Body())
	name := idempotency.Name{Caller: r.key, Key: fmt.Sprintf("%x/%d", event, number)}
	for waited := false; ; waited = true {
		attempt, first, err := s.delivery.Begin(r.ctx, r.id, name, event)
		if waited && err != nil && r.ctx.Err() != nil {
			return nil, nil, &delivery.Error{Kind: delivery.Unknown, Err: errEarlierTry}
		}
		if kindOf(err) != delivery.InFlight {
			return attempt, first, err
		}
		front.Pause(r.ctx, inFlightPause)
	}
}

const inFlightPause = 50 * time.Millisecond

var errEarlierTry = errors.New("an earlier try was still in progress")

// sendEmail sends one email, and keeps what came of it for the next try of the call.
func (s *Server) sendEmail(r *request, attempt *delivery.Attempt, email delivery.Send) idempotency.Answer {
	r.isAbout(&email)
	came := accepted
	if result, err := attempt.Send(email); err != nil {
		came = s.told(r, s.notSent(r, email.Traits, err))
	} else {
		s.noteSent(r, &result)
	}
	attempt.Finish(came)
	return came
}

// told notes an error for the log, and says it to a visitor. One whose email may have left is not told of an
// error, since the system would then forget the code in it.
func (s *Server) told(r *request, err error) idempotency.Answer {
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
