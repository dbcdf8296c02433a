package api

import (
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/verify"
)

// verifyBody is an address, the code that was typed to prove it, and what the proof is for.
type verifyBody struct {
	Email   email   `json:"email" validate:"address"`
	Code    *string `json:"code" validate:"required,code"` // one that cannot be right costs no guess
	Purpose *string `json:"purpose" validate:"omitnil,purpose"`
}

type verifyAnswer struct {
	Verified bool `json:"verified"`
}

// verifyCode handles POST /verify-code. A correct code is used up.
func (s *Server) verifyCode(r *request, body *verifyBody) (any, error) {
	r.mailbox = body.Email.Address
	outcome, err := s.delivery.Verify(r.ctx, r.mailbox, text(body.Purpose), *body.Code)
	if err != nil {
		s.metrics.checked(r, "failed")
		return nil, explain(err, "The code cannot be checked now. A guess may have been counted.")
	}
	s.metrics.checked(r, verifyResults[outcome.Result])
	switch outcome.Result {
	case verify.Correct:
		return verifyAnswer{true}, nil
	case verify.Expired:
		return nil, &problem{kind: codeExpired}
	}
	rep := r.reports(report.OfOne("guesses", "this mailbox's guesses at codes", r.mailbox.Hash(), &outcome.Guesses))
	if outcome.Result == verify.Spent {
		return nil, denied(rep)
	}
	return nil, &problem{kind: codeIncorrect, guessesLeft: outcome.GuessesLeft, report: rep}
}

// verifyResults are the words for them in metrics.
var verifyResults = map[verify.Result]string{
	verify.Expired: "expired", verify.Incorrect: "incorrect", verify.Correct: "correct", verify.Spent: "spent",
}
