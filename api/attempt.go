package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// An attempt is a send with an Idempotency-Key that is being done.
type attempt struct {
	requestID string

	lease idempotency.Lease // of the answer
	mark  idempotency.Lease // of the mark; none until the mail is handed over
	until time.Time         // the lease may end then: nothing is begun any more

	theirs bool // the mark of another attempt was there

	reservation throttle.ID // begins as all of the key do, on all servers

	alone bool // another server may have done it that could not be asked
	apart bool // charged so that nobody can take it up
	// own makes the charge this server's own to tell of, where the others cannot be asked; nil
	// for one that another has made.
	own         func(context.Context) (alone bool, err error)
	mayHaveLeft bool                // so the answer is kept, whatever it is
	answer      *idempotency.Answer // to be kept; none as long as there is no answer, or none to keep
	refunding   bool                // the key is free when the refund is done, which has the attempt from then on
}

// LeaseRest is how long after SendDeadline the lease of an attempt lasts, so that it may still
// give back what it charged and keep its answer.
const LeaseRest = 15 * time.Second

// newAttempt is the attempt that an outcome begins, which was asked for at this moment: its
// lease began no earlier.
func (s *Server) newAttempt(c *call, o idempotency.Outcome, began time.Time) *attempt {
	until := began.Add(s.with.SendDeadline + LeaseRest)
	return &attempt{requestID: c.requestID, lease: o.Lease, until: until, alone: o.Degraded}
}

// attempt does the send and keeps its answer, or frees the key. What may have left is
// answered alike for ever, a 504 too: done again, it could be a second mail. All else
// that is not a yes was about the moment, and was charged to nobody.
func (s *Server) attempt(ctx context.Context, c *call, q sendRequest, out *answer) error {
	c.attempt.reservation = s.reservation(c.attempt.lease)
	return s.conclude(ctx, c, out, s.answerSend(ctx, c, q, out))
}

// conclude ends an attempt. An answer goes through the refunds, which try again what fails.
func (s *Server) conclude(ctx context.Context, c *call, out *answer, err error) error {
	a := c.attempt
	if a.refunding {
		return err
	}
	if a.mayHaveLeft {
		if err != nil {
			out.refuse(problemOf(err))
		}
		answer := out.kept()
		a.answer = &answer
	}
	s.refunds.now(ctx, refund{key: a})
	return err
}

var errLeaseLost = errors.New("the lease had ended")

// end keeps the answer, or frees the key of an attempt that has none to keep.
func (r Repeats) end(ctx context.Context, a *attempt) error {
	if a.answer == nil {
		return r.free(ctx, a)
	}
	kept, err := r.Answers.Finish(ctx, a.lease, *a.answer)
	if err == nil && !kept {
		err = errLeaseLost
	}
	if err != nil {
		return fmt.Errorf("keeping an answer: %w", err)
	}
	return nil
}

// free lets the key be used again. The mark goes first: a key without it may be sent.
func (r Repeats) free(ctx context.Context, a *attempt) error {
	if !a.mark.Token.IsZero() {
		if _, err := r.HandedOver.Abandon(ctx, a.mark); err != nil {
			return fmt.Errorf("taking back a mark: %w", err)
		}
		a.mark = idempotency.Lease{}
	}
	if _, err := r.Answers.Abandon(ctx, a.lease); err != nil {
		return fmt.Errorf("freeing a key: %w", err)
	}
	return nil
}

// late reports whether the lease may have ended, and somebody else may have begun.
func (a *attempt) late(now time.Time) bool { return now.After(a.until) }

// stays is what becomes of a key that is not freed, or whose answer is not kept.
func (a *attempt) stays() string {
	marked := a.theirs || !a.mark.Token.IsZero()
	switch {
	case a.answer != nil && marked:
		return "an answer could not be kept: its key is in flight until the lease ends, and whoever uses it then is told that the mail may have left (504)"
	case a.answer != nil: // of a recipient who was refused before the mail was handed over
		return "an answer could not be kept: its key is in flight until the lease ends, and for whoever uses it then the mail is tried anew"
	case marked:
		return "a key could not be freed, and whoever uses it when its lease has ended is told that the mail may have left (504)"
	}
	return "a key could not be freed, and is in flight until its lease ends"
}
