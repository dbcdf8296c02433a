package api

import (
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/verify"
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
	r.Mailbox = body.Email.Address
	if body.Verified != nil {
		return s.reportVerified(r)
	}
	outcome, err := s.with.Delivery.Verify(r.ctx, r.live.Rules, r.Mailbox, text(body.Purpose), *body.Code)
	if err != nil {
		r.What = ledger.Unchecked
		return nil, explain(err, "The code cannot be checked now. A guess may have been counted.")
	}
	r.What = checks[outcome.Result]
	switch outcome.Result {
	case verify.Correct:
		return verifyAnswer{true}, nil
	case verify.Expired:
		return nil, &problem{kind: codeExpired}
	}
	rep := r.reports(report.OfOne("guesses", "this mailbox's guesses at codes", r.Mailbox.Hash(), &outcome.Guesses))
	if outcome.Result == verify.Spent {
		return nil, denied(rep)
	}
	return nil, &problem{kind: codeIncorrect, report: rep, members: members{GuessesLeft: &outcome.GuessesLeft}}
}

// reportVerified is told that a code of the caller's was right. What other callers sent stays charged.
func (s *Server) reportVerified(r *request) (any, error) {
	if err := s.with.Delivery.Report(r.ctx, r.live.Rules, r.Mailbox, r.callerName()); err != nil {
		r.What = ledger.Unchecked
		return nil, explain(err, "The report cannot be kept now. Repeat it.")
	}
	r.What = ledger.Reported
	return verifyAnswer{true}, nil
}

// checks are what becomes of a check, by the result.
var checks = map[verify.Result]*ledger.What{
	verify.Expired: ledger.Expired, verify.Incorrect: ledger.Incorrect, verify.Correct: ledger.Correct, verify.Spent: ledger.Spent,
}
