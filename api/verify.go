package api

import (
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/verify"
)

// verifyBody is an address, the code that was typed to prove it, and what the proof is for; or the report that a code
// of the caller's was right.
type verifyBody struct {
	Email    email   `json:"email" validate:"address"`
	Code     *string `json:"code" validate:"required_without=Verified,omitnil,code"` // one that cannot be right costs no guess
	Purpose  *string `json:"purpose" validate:"omitnil,excluded_with=Verified,purpose"`
	Verified *bool   `json:"verified" validate:"omitnil,excluded_with_all=Code,eq=true"`
}

type verifyAnswer struct {
	Verified bool `json:"verified"`
}

// verifyCode handles POST /verify-code. A correct code is used up.
func (s *Server) verifyCode(r *request, body *verifyBody) (any, error) {
	r.mailbox = body.Email.Address
	if body.Verified != nil {
		return s.reportVerified(r)
	}
	outcome, err := s.delivery.Verify(r.ctx, r.live.Rules, r.mailbox, text(body.Purpose), *body.Code)
	if err != nil {
		s.metrics.checked(r, "failed")
		return nil, explain(err, "The code cannot be checked now. A guess may have been counted.")
	}
	s.metrics.checked(r, verifyResults[outcome.Result])
	switch outcome.Result {
	case verify.Correct:
		s.past.add(s.with.Now(), rules.Send{Mailbox: r.mailbox.Key()}, true)
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

// reportVerified is told that a code of the caller's was right. What other callers sent stays charged.
func (s *Server) reportVerified(r *request) (any, error) {
	if err := s.delivery.Report(r.ctx, r.live.Rules, r.mailbox, r.callerName()); err != nil {
		s.metrics.checked(r, "failed")
		return nil, explain(err, "The report cannot be kept now. Repeat it.")
	}
	s.metrics.checked(r, "reported")
	s.past.add(s.with.Now(), rules.Send{Mailbox: r.mailbox.Key(), Caller: r.callerName()}, true)
	return verifyAnswer{true}, nil
}

// verifyResults are the words for them in metrics.
var verifyResults = map[verify.Result]string{
	verify.Expired: "expired", verify.Incorrect: "incorrect", verify.Correct: "correct", verify.Spent: "spent",
}
