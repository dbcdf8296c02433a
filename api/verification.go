package api

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// guessesRule is what answers call the limit of guesses.
const guessesRule = "guesses"

// A verification is an address, what somebody typed who says that it is his, and what for.
type verification struct {
	of             address.Address
	typed, purpose string
}

func (s *Server) readVerification(in *incoming) (q verification, err error) {
	var email, code, purpose text
	if err := readBody(in, []field{{name: "email", text: &email}, {name: "code", text: &code}, {name: "purpose", text: &purpose}}); err != nil {
		return q, err
	}
	q.typed, q.purpose = code.value, purpose.value
	var wrong []fieldProblem
	if q.of, err = s.recipient(email); err != nil {
		wrong = append(wrong, recipientProblem(err))
	}
	switch _, err := verify.ParseCode(code.value); {
	case !code.given:
		wrong = append(wrong, fieldProblem{"code", "missing", "code is missing."})
	case err != nil: // it could not be right, so it costs no guess
		wrong = append(wrong, fieldProblem{"code", "invalid", "code must be six digits."})
	}
	wrong = append(wrong, purposeProblems(purpose)...)
	if wrong != nil {
		return q, &problem{kind: invalid, fields: wrong}
	}
	return q, nil
}

// purposeProblems look at what a code is said to be for. An empty purpose is none that a back
// end has meant, so it is no way to go without.
func purposeProblems(purpose text) []fieldProblem {
	if purpose.given && throttle.CheckName(purpose.value) != nil {
		return []fieldProblem{{"purpose", "invalid", "purpose must be 1 to 32 lower-case letters, digits, - and _, and start with a letter."}}
	}
	return nil
}

// verified is the answer to a right code.
type verified struct {
	Verified bool `json:"verified"`
}

// verify checks a code, and uses it up if it is right.
func (s *Server) verify(ctx context.Context, c *call, q verification) (verified, error) {
	c.mailbox = q.of
	outcome, err := s.delivery.Verify(ctx, q.of, q.purpose, q.typed)
	if err != nil {
		s.metrics.verified("failed")
		return verified{}, inWords(err, notChecked)
	}
	s.metrics.verified(results[outcome.Result])
	guesses := charge{
		quota: quotaOfOne(guessesRule, q.of.Hash(), outcome.Guesses),
		whom:  "guesses at this mailbox's codes", then: "The next one is looked at",
	}
	switch outcome.Result {
	case verify.Correct:
		return verified{true}, nil
	case verify.Spent:
		return verified{}, denied(&guesses)
	case verify.Incorrect:
		return verified{}, &problem{kind: codeIncorrect, attempts: outcome.AttemptsLeft, charged: &guesses}
	}
	return verified{}, &problem{kind: codeExpired}
}

// notChecked is what is said where a history failed: before the guess was counted or after.
const notChecked = "The code cannot be checked now. This may have cost a guess."

// results are the words for them in metrics.
var results = map[verify.Result]string{
	verify.Expired: "expired", verify.Incorrect: "incorrect", verify.Correct: "correct", verify.Spent: "spent",
}

// guesses are the limits of guesses at the mailbox's codes, the shortest window first.
func (s *Server) guesses(ctx context.Context, mailbox address.Address) ([]wire.Limit, error) {
	if s.with.Guesses == nil {
		return nil, nil
	}
	verdict, err := s.with.Guesses.Peek(ctx, mailbox.Key())
	if err != nil {
		return nil, fmt.Errorf("looking at the guesses: %w", err)
	}
	return wire.Limits(&verdict, ""), nil
}

// resetGuesses gives the mailbox its guesses back, and reports how many had been spent.
func (s *Server) resetGuesses(ctx context.Context, mailbox address.Address) (int, error) {
	if s.with.Guesses == nil {
		return 0, nil
	}
	return s.with.Guesses.Reset(ctx, mailbox.Key())
}
