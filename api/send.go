package api

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// A sent is the answer to a mail that a relay has taken.
type sent struct {
	charge
	to        mailer.Address
	messageID string
	expiresIn int64 // milliseconds; 0 where the caller made the code
}

// send takes a place in the mailbox's tiers, and sends. Whatever certainly never left
// gives the place back; whatever may have left keeps it.
func (s *Server) send(ctx context.Context, c *call, q sendRequest) (sent, error) {
	c.mailbox, c.id = q.mail.To, throttle.NewID()
	verdict, err := s.take(ctx, c)
	if err != nil {
		s.metrics.sent(outcomeOf(err), "")
		return sent{}, err
	}
	c.limit = verdict.Limit
	if !verdict.Allowed {
		c.id = throttle.ID{}
		s.metrics.sent("denied", verdict.Limit)
		return sent{}, &problem{kind: quotaExceeded, retryAfter: waitOf(&verdict), charged: &charge{verdict: verdict}}
	}
	done := sent{charge: charge{verdict, c.id}, to: q.mail.To}
	if err := s.mail(ctx, c, q, &done); err != nil {
		s.metrics.sent(outcomeOf(err), "")
		return sent{}, s.settle(ctx, c, done.charge, err)
	}
	s.metrics.sent("sent", "")
	return done, nil
}

// take asks the limiter. After a failure nobody knows whether it was recorded, so the
// place is given back, as soon as the limiter can be asked again.
func (s *Server) take(ctx context.Context, c *call) (throttle.Verdict, error) {
	began := time.Now()
	verdict, err := s.with.Limiter.Take(ctx, c.mailbox.Key(), c.id)
	s.metrics.decided(time.Since(began))
	if err != nil {
		s.refunds.later(c.mailbox, c.id)
	}
	return verdict, err
}

// mail makes the mail and hands it to a relay.
func (s *Server) mail(ctx context.Context, c *call, q sendRequest, done *sent) error {
	mail := q.mail
	mail.ID, mail.NowMS = c.id.String(), s.with.Now()
	if !q.own {
		code, err := verify.NewCode(rand.Reader)
		if err != nil {
			return notSent{err}
		}
		mail.Code, mail.ExpiresInMS, done.expiresIn = code, s.with.CodeLife, s.with.CodeLife
	}
	message, err := s.with.Composer.Compose(mail)
	if err != nil {
		return notSent{err}
	}
	done.messageID = message.ID
	began := time.Now()
	_, err = s.with.Sender.Send(ctx, message)
	s.metrics.relayed(outcomeOf(err), time.Since(began))
	return err
}

// notSent is an error of ours before any relay was asked.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// settle gives the place back if the mail certainly never left, and says how the
// mailbox stands if it may have.
func (s *Server) settle(ctx context.Context, c *call, spent charge, err error) error {
	p := problemOf(err)
	if neverLeft(err) {
		s.refunds.now(ctx, c.mailbox, c.id)
		c.limit = ""
		return p
	}
	if p.kind != internal {
		p.charged = &spent
	}
	return p
}

// neverLeft reports whether an error of send is certain proof that no mail went out.
// An error nobody knows proves nothing.
func neverLeft(err error) bool {
	if send, ok := errors.AsType[*mailer.SendError](err); ok {
		return send.Outcome == mailer.Unavailable
	}
	_, ours := errors.AsType[notSent](err)
	return ours || errors.Is(err, mailer.ErrBusy) || errors.Is(err, mailer.ErrUnsendable)
}

// outcomeOf is the word for an end of a send in the metrics.
func outcomeOf(err error) string {
	if err == nil {
		return "sent"
	}
	switch problemOf(err).kind {
	case recipientRejected:
		return "rejected"
	case relayUnavailable:
		return "unavailable"
	case deliveryUnknown:
		return "unknown"
	case busy:
		return "busy"
	case storeUnavailable:
		return "store-unavailable"
	}
	return "failed"
}

func writeSent(out *answer, done *sent) {
	out.json(200)
	out.show(&done.verdict)
	b := append(out.body, `{"status":"sent","id":"`...)
	b = append(b, done.id[:]...)
	b = append(b, `","message_id":`...)
	b = appendString(b, done.messageID)
	b = append(b, `,"email":`...)
	b = appendString(b, done.to.String())
	if done.expiresIn > 0 {
		b = append(b, `,"expires_in_ms":`...)
		b = strconv.AppendInt(b, done.expiresIn, 10)
	}
	b = append(b, ',')
	b = appendVerdict(b, &done.verdict, out.tiers)
	out.body = append(b, '}')
}
