package mailer

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/internal/breaker"
)

// diedEarly says whether the connection, not the mail, was what failed, or may have
// been, and the mail certainly never left. A connection that had just answered MAIL and
// is silent at RCPT is not dead: the recipient is slow, and would be again.
func diedEarly(c *smtpConn, failure *SendError) bool {
	return c.broken && failure.Outcome == Unavailable && failure.Step != StepFinalDot && !errors.Is(failure, errHeldBack) &&
		(failure.Reply == nil || failure.Reply.Code == 421 || failure.Step == StepRSET || forNow(failure)) &&
		(failure.Step != StepRCPT || !errors.Is(failure, errTimeout))
}

// forNow says whether MAIL or DATA was answered 4xx. On a connection that was used
// before it may have been about that one alone, as "452 4.4.5 Maximum number of
// messages per session exceeded" is, and would meet every mail after it, too. But
// many a relay looks at the recipient only at DATA, and says then what it has
// against that one.
func forNow(failure *SendError) bool {
	if failure == nil || failure.Reply == nil || failure.Reply.Code/100 != 4 {
		return false
	}
	return failure.Step == StepMAIL || failure.Step == StepDATA && failure.Reply.aboutSession()
}

// judge is what a try tells about the relay's health. Where it cannot be seen at
// what the relay was silent nothing is learnt but to ask MAIL and RCPT apart from
// now on.
func (r *relay) judge(ctx context.Context, c *smtpConn, failure *SendError) breaker.Outcome {
	v := judgement(ctx, failure)
	if v == breaker.Failed && blurred(c, failure) {
		r.opener.apart.Store(true)
		return breaker.NotJudged
	}
	return v
}

// blurred says whether the connection broke before MAIL was answered, with RCPT
// gone out along with it: servers may keep MAIL's answer back until they have
// RCPT's, and that may wait on the recipient.
func blurred(c *smtpConn, failure *SendError) bool {
	return c != nil && c.broken && c.ranAhead && failure.Reply == nil && (failure.Step == StepRSET || failure.Step == StepMAIL)
}

// atRecipient says whether what kept the mail may be its recipient's doing: all
// that can come of RCPT may, but what is about the command, as "530 Authentication
// required" is.
func atRecipient(c *smtpConn, failure *SendError) bool {
	if failure.Step == StepRCPT {
		return failure.Reply == nil || !failure.Reply.aboutCommand()
	}
	return blurred(c, failure)
}

// judgement goes by the step at which a try failed: a failure at RCPT means
// that MAIL was answered well. A mail that ran out of its own time tells
// nothing, neither way, nor does one too many at once.
func judgement(ctx context.Context, failure *SendError) breaker.Outcome {
	switch {
	case failure == nil, failure.Outcome == Rejected:
		return breaker.Answered
	case ctx.Err() == context.Canceled, errors.Is(failure, ErrClosed), errors.Is(failure, errOutOfTime),
		errors.Is(failure, errCrowded):
		return breaker.NotJudged
	case errors.Is(failure, errSevenBitsOnly), errors.Is(failure, errTooGreat), errors.Is(failure, errHeldBack):
		return breaker.Answered
	case failure.Step == StepRCPT, tooGreat(failure):
		// It took MAIL, and what kept the mail then may be the recipient's doing.
		return breaker.Reached
	case failure.Outcome == Unknown, failure.Reply == nil, failure.Reply.Code == 421:
		return breaker.Failed
	case failure.Step == StepDATA, failure.Step == StepFinalDot:
		// 4xx, or a matter of policy, to one mail.
		return breaker.Answered
	}
	return breaker.Failed
}

// atTheDoor says whether a new connection was turned away for now.
func atTheDoor(failure *SendError) bool {
	return failure.Reply != nil && failure.Reply.Code/100 == 4 &&
		(failure.Step == StepBanner || failure.Step == StepEHLO || failure.Step == StepAUTH)
}

// oneTooMany says whether a mail was put off because others are being sent over other
// connections: so Microsoft 365 does beyond three.
func oneTooMany(c *smtpConn, failure *SendError) bool {
	return c != nil && failure != nil && failure.Reply != nil && failure.Reply.Code == 432
}

// tooGreat says whether MAIL was refused for the size that it declared. Another mail may
// be smaller.
func tooGreat(failure *SendError) bool {
	return failure.Step == StepMAIL && failure.Reply != nil && failure.Reply.Code == 552
}
