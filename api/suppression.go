package api

import (
	"cmp"
	"errors"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/suppression"
)

// suppressed says why an address gets no email, and until when.
type suppressed struct {
	Reason suppression.Reason `json:"reason"`
	Until  wire.Moment        `json:"until"` // null: until it is removed
}

// suppressionsAnswer is a part of the list.
type suppressionsAnswer struct {
	Suppressions []suppression.Entry `json:"suppressions"`
	Next         string              `json:"next,omitempty"`
}

type suppressBody struct {
	Reason string `json:"reason" validate:"omitempty,oneof=complaint manual hard-bounce not-me"`
	Source string `json:"source" validate:"bytes=256,printable"`
}

// listSuppressions shows an operator a part of the list.
func (s *Server) listSuppressions(r *request, _ *none) (any, error) {
	entries, next, err := s.with.Suppressions.Page(r.ctx, r.c.Query("after"))
	if errors.Is(err, suppression.ErrPage) {
		return nil, invalidFields(fieldProblem{"after", "invalid", "after must be the next of an answer."})
	}
	if err != nil {
		return nil, err
	}
	return suppressionsAnswer{entries, next}, nil
}

// suppress adds an address to the list.
func (s *Server) suppress(r *request, body *suppressBody) (any, error) {
	reason := suppression.Reason(cmp.Or(body.Reason, string(suppression.Manual)))
	r.Reason, r.Source = string(reason), body.Source
	return noContent{}, s.audit(r, ledger.Suppression, s.with.Suppressions.Add(r.ctx, r.Mailbox, reason, body.Source))
}

// unsuppress removes an address from the list, for all reasons.
func (s *Server) unsuppress(r *request, _ *none) (any, error) {
	return noContent{}, s.audit(r, ledger.Unsuppressed, s.with.Suppressions.Remove(r.ctx, r.Mailbox))
}
