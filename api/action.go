package api

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
)

// subjectBody is the body of the routes about the subject of an action.
type subjectBody struct {
	Subject *string `json:"subject" validate:"required,min=1,bytes=256,printable"`
}

func (b subjectBody) subject() string { return *b.Subject }

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
	Action  string `json:"action,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject"` // its hash, as in the log
	Cleared int    `json:"cleared"`
}

// readAction reads a request about the subject of an action, and notes both for the log.
func readAction[B interface{ subject() string }](s *Server, c *fiber.Ctx) (limiter throttle.Limiter, body B, err error) {
	r := requestOf(c)
	limiter = r.live.Actions[c.Params("action")]
	if limiter == nil {
		return nil, body, unknown(unknownAction, "action", slices.Sorted(maps.Keys(r.live.Actions)))
	}
	r.action = strings.Clone(c.Params("action"))
	if err = s.decode(c, &body); err == nil {
		r.subject = s.names.subject(body.subject())
	}
	return limiter, body, err
}

// takeAction admits the action once, or refuses it. With an Idempotency-Key the id of the charge is
// derived from the key, so a repeated take is recognized and not charged again. Such a take is not
// refunded when the storage fails: it may repeat one that was answered before.
func (s *Server) takeAction(c *fiber.Ctx) error {
	r := requestOf(c)
	key, err := readKey(c)
	if err != nil {
		return err
	}
	limiter, body, err := readAction[subjectBody](s, c)
	if err != nil {
		return err
	}
	r.admission = throttle.NewID()
	if key != "" {
		r.admission = s.names.take(idempotency.Name{Caller: r.callerName(), Key: key})
	}
	v, err := limiter.Take(r.ctx, body.subject(), r.admission)
	if err != nil {
		if key == "" {
			s.delivery.Refund(limiter, body.subject(), r.admission, slog.Group("", "action", r.action, "subject", r.subject))
		}
		s.metrics.actions.WithLabelValues(r.action, string(delivery.Storage), "").Inc()
		return err
	}
	told := r.told(report.OfOne(r.action, "the action "+r.action+" for this subject", r.subject, &v))
	if !v.Allowed {
		r.admission = throttle.ID{}
		s.metrics.actions.WithLabelValues(r.action, "denied", v.Limit).Inc()
		return denied(told)
	}
	if v.Newest == 0 { // a counter
		r.admission = idAt(v.At)
	}
	s.metrics.actions.WithLabelValues(r.action, "taken", "").Inc()
	return respondWith(c, &actionAnswer{true, r.action, r.admission.String(), "", v.Delay}, told)
}

// peekAction answers as a take would, and charges nothing.
func (s *Server) peekAction(c *fiber.Ctx) error {
	r := requestOf(c)
	limiter, body, err := readAction[subjectBody](s, c)
	if err != nil {
		return err
	}
	v, err := limiter.Peek(r.ctx, body.subject())
	if err != nil {
		return err
	}
	told := r.told(report.OfOne(r.action, "", r.subject, &v))
	return respondWith(c, &actionAnswer{v.Allowed, r.action, "", r.subject, v.Delay}, told)
}

// releaseAction refunds a take.
func (s *Server) releaseAction(c *fiber.Ctx) error {
	r := requestOf(c)
	limiter, body, err := readAction[releaseBody](s, c)
	if err != nil {
		return err
	}
	r.admission = throttle.ID([]byte(body.ID))
	released, err := limiter.Release(r.ctx, body.subject(), throttle.Admission{ID: r.admission, At: momentOf(r.admission)})
	if err != nil {
		return err
	}
	if released {
		s.metrics.actions.WithLabelValues(r.action, "released", "").Inc()
	}
	return respond(c, releaseAnswer{released})
}

// resetAction clears what an action has counted for a subject.
func (s *Server) resetAction(c *fiber.Ctx) error {
	limiter, body, err := readAction[subjectResetBody](s, c)
	if err != nil {
		return err
	}
	name := requestOf(c).action
	return s.clear(c, "action", name, limiter, body.subject(), body.Reason, &resetAnswer{Action: name})
}

// clear resets a key of the limiter of an action or a rule, and writes that to the audit log.
func (s *Server) clear(c *fiber.Ctx, of, name string, limiter throttle.Limiter, key, reason string, answer *resetAnswer) error {
	r := requestOf(c)
	if err := s.auditReady(r); err != nil {
		return err
	}
	cleared, err := limiter.Reset(r.ctx, key)
	s.audit(r, of+" reset", err,
		slog.String(of, name),
		slog.String("subject", r.subject),
		slog.String("reason", reason),
		slog.Int("cleared", cleared),
	)
	if err != nil {
		return explain(err, notReset)
	}
	s.metrics.resets.Inc()
	answer.Subject, answer.Cleared = r.subject, cleared
	return respond(c, answer)
}
