package api

import (
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/verify"
)

// verifyBody is an address, the code that was typed to prove it, and what the proof is for.
type verifyBody struct {
	Email   *string `json:"email" validate:"required,address"`
	Code    *string `json:"code" validate:"required,code"` // one that cannot be right costs no guess
	Purpose *string `json:"purpose" validate:"omitnil,purpose"`
}

type verifyAnswer struct {
	Verified bool `json:"verified"`
}

// verifyCode handles POST /verify-code. A correct code is used up.
func (s *Server) verifyCode(c *fiber.Ctx) error {
	r, purpose := requestOf(c), ""
	var body verifyBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	if body.Purpose != nil {
		purpose = *body.Purpose
	}
	r.mailbox = r.parsed.address
	outcome, err := s.delivery.Verify(r.ctx, r.mailbox, purpose, *body.Code)
	if err != nil {
		s.metrics.codes.WithLabelValues("failed").Inc()
		return explain(err, "The code cannot be checked now. A guess may have been counted.")
	}
	s.metrics.codes.WithLabelValues(verifyResults[outcome.Result]).Inc()
	switch outcome.Result {
	case verify.Correct:
		return respond(c, verifyAnswer{true})
	case verify.Expired:
		return &problem{kind: codeExpired}
	}
	told := r.told(report.OfOne("guesses", "this mailbox's guesses at codes", r.mailbox.Hash(), &outcome.Guesses))
	if outcome.Result == verify.Spent {
		return denied(told)
	}
	return &problem{kind: codeIncorrect, guessesLeft: outcome.GuessesLeft, report: told}
}

// verifyResults are the words for them in metrics.
var verifyResults = map[verify.Result]string{
	verify.Expired: "expired", verify.Incorrect: "incorrect", verify.Correct: "correct", verify.Spent: "spent",
}
