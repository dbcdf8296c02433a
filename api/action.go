package api

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
)

// subjectBody is the body of the routes about the subject of an action.
type subjectBody struct {
	Subject *string `json:"subject" validate:"required,min=1,bytes=256,opaque"`
}

func (b *subjectBody) check(s *Server, r *request, wrong []fieldProblem) []fieldProblem {
	if len(wrong) == 0 {
		r.Subject = s.names.subject(*b.Subject)
	}
	return wrong
}

type releaseBody struct {
	subjectBody
	ID string `json:"id" validate:"admission"`
}

// subjectResetBody has the operator's reason, whose length is in characters, as in the console.
type subjectResetBody struct {
	subjectBody
	Reason string `json:"reason" validate:"max=500"`
}

type actionAnswer struct {
	Allowed bool   `json:"allowed"`
	Action  string `json:"action"`
	ID      string `json:"id,omitempty"`      // of a take
	Subject string `json:"subject,omitempty"` // of a peek: its name in logs
	Delay   int64  `json:"delay_ms,omitzero"`
}

type releaseAnswer struct {
	Released bool `json:"released"`
}

// resetAnswer says how many sends of a subject were cleared.
type resetAnswer struct {
	Action  string `json:"action"`
	Subject string `json:"subject"` // its hash, as in the log
	Cleared int    `json:"cleared"`
}

// readAction finds the action in the path.
func readAction(r *request) error {
	name := strings.Clone(r.c.Params("action"))
	limiter, known := r.live.Actions[name]
	if !known {
		return unknown(unknownAction, "action", slices.Sorted(maps.Keys(r.live.Actions)))
	}
	r.Action, r.counted.Limiter = name, limiter
	return nil
}

// takeAction admits the action once, or refuses it. With an Idempotency-Key the id of the charge is
// derived from the key, so a repeated take is recognized and not charged again. Such a take is not
// refunded when the storage fails: it may repeat one that was answered before.
func (s *Server) takeAction(r *request, body *subjectBody) (any, error) {
	limiter, key := r.counted.Limiter, r.idempotencyKey
	r.ID = throttle.NewID()
	if key != "" {
		r.ID = s.names.take(idempotency.Name{Caller: r.callerName(), Key: key})
	}
	v, err := limiter.TakeID(r.ctx, *body.Subject, r.ID)
	if err != nil {
		if key == "" {
			s.with.Delivery.Refund(limiter, *body.Subject, r.ID, slog.Group("", "action", r.Action, "subject", r.Subject))
		}
		r.What = ledger.Untaken
		return nil, err
	}
	rep := r.reports(report.OfOne(r.Action, "the action "+r.Action+" for this subject", r.Subject, &v))
	if !v.Allowed {
		r.ID = throttle.ID{}
		r.What = ledger.Refused
		return nil, denied(rep)
	}
	if !limiter.Algorithm.Exact() {
		r.ID = idAt(v.At)
	}
	r.What = ledger.Taken
	return reported{&actionAnswer{true, r.Action, r.ID.String(), "", v.Delay}, rep}, nil
}

// peekAction answers as a take would, and charges nothing.
func (s *Server) peekAction(r *request, body *subjectBody) (any, error) {
	v, err := r.counted.Limiter.Peek(r.ctx, *body.Subject)
	if err != nil {
		return nil, err
	}
	rep := r.reports(report.OfOne(r.Action, "", r.Subject, &v))
	return reported{&actionAnswer{v.Allowed, r.Action, "", r.Subject, v.Delay}, rep}, nil
}

// releaseAction refunds a take.
func (s *Server) releaseAction(r *request, body *releaseBody) (any, error) {
	r.ID = throttle.ID([]byte(body.ID))
	released, err := r.counted.Limiter.Release(r.ctx, *body.Subject, throttle.Admission{ID: r.ID, At: timeIn(r.ID)})
	if released {
		r.What = ledger.Released
	}
	return releaseAnswer{released}, err
}

// resetAction clears what an action has counted for a subject.
func (s *Server) resetAction(r *request, body *subjectResetBody) (any, error) {
	cleared, err := r.counted.Limiter.Reset(r.ctx, *body.Subject)
	r.Reason, r.Cleared = body.Reason, []ledger.Cleared{{Name: "cleared", Count: cleared}}
	return &resetAnswer{r.Action, r.Subject, cleared}, s.audit(r, ledger.ActionReset, err)
}
