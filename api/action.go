package api

import (
	"log/slog"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// subjectBody is the body of the routes about the subject of an action.
type subjectBody struct {
	Subject *string `json:"subject" validate:"required,min=1,bytes=256,printable"`
}

type releaseBody struct {
	Subject *string `json:"subject" validate:"required,min=1,bytes=256,printable"`
	ID      string  `json:"id" validate:"admission"`
}

// subjectResetBody has the operator's reason, whose length is in characters, as in the console.
type subjectResetBody struct {
	Subject *string `json:"subject" validate:"required,min=1,bytes=256,printable"`
	Reason  string  `json:"reason" validate:"max=500"`
}

type actionAnswer struct {
	Allowed bool   `json:"allowed"`
	Action  string `json:"action"`
	ID      string `json:"id,omitempty"`
	Delay   int64  `json:"delay_ms,omitzero"`
	wire.Verdict
}

type releaseAnswer struct {
	Released bool `json:"released"`
}

// resetAnswer is how much was forgotten of what an action, or a rule, counted for a subject.
type resetAnswer struct {
	Action  string `json:"action,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject"` // as the log calls it
	Cleared int    `json:"cleared"`
}

// action is the limiter of the action in the path, and notes the action for the log.
func (s *Server) action(c *fiber.Ctx) (throttle.Limiter, error) {
	r := requestOf(c)
	limiter := r.live.Actions[c.Params("action")]
	if limiter == nil {
		return nil, &problem{kind: unknownAction}
	}
	r.action = strings.Clone(c.Params("action"))
	return limiter, nil
}

// takeAction admits the action once, or refuses. With a key it is charged under an id that
// follows from the key, so a repeated take is recognized and not charged again. Then what may
// have been charged when the storage failed is not refunded: the take may have been answered
// before, and its caller would lose the quota.
func (s *Server) takeAction(c *fiber.Ctx) error {
	r := requestOf(c)
	key, err := readKey(c)
	if err != nil {
		return err
	}
	limiter, err := s.action(c)
	if err != nil {
		return err
	}
	var body subjectBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	r.subject, r.admission = s.names.subject(*body.Subject), throttle.NewID()
	if key != "" {
		r.admission = s.names.take(idempotency.Name{Caller: r.callerName(), Key: key})
	}
	v, err := limiter.Take(r.ctx, *body.Subject, r.admission)
	if err != nil {
		if key == "" {
			s.delivery.Refund(limiter, *body.Subject, r.admission, slog.Group("", "action", r.action, "subject", r.subject))
		}
		s.metrics.actions.WithLabelValues(r.action, string(delivery.Storage), "").Inc()
		return err
	}
	q := quotaOfOne(r.action, r.subject, v)
	if !v.Allowed {
		r.admission = throttle.ID{}
		q.whose = "the action " + r.action + " for this subject"
		s.metrics.actions.WithLabelValues(r.action, "denied", v.Limit).Inc()
		return denied(q)
	}
	if v.Newest == 0 { // a counter
		r.admission = idAt(v.At)
	}
	r.delay = v.Delay
	s.metrics.actions.WithLabelValues(r.action, "taken", "").Inc()
	return respond(c, &actionAnswer{true, r.action, r.admission.String(), v.Delay, q.tell(c)})
}

// peekAction says what a take would be answered, and records nothing.
func (s *Server) peekAction(c *fiber.Ctx) error {
	r := requestOf(c)
	limiter, err := s.action(c)
	if err != nil {
		return err
	}
	var body subjectBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	r.subject = s.names.subject(*body.Subject)
	v, err := limiter.Peek(r.ctx, *body.Subject)
	if err != nil {
		return err
	}
	q := quotaOfOne(r.action, r.subject, v)
	return respond(c, &actionAnswer{v.Allowed, r.action, "", v.Delay, q.tell(c)})
}

// releaseAction refunds a take.
func (s *Server) releaseAction(c *fiber.Ctx) error {
	r := requestOf(c)
	limiter, err := s.action(c)
	if err != nil {
		return err
	}
	var body releaseBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	r.subject, r.admission = s.names.subject(*body.Subject), throttle.ID([]byte(body.ID))
	released, err := limiter.Release(r.ctx, *body.Subject, throttle.Admission{ID: r.admission, At: momentOf(r.admission)})
	if err != nil {
		return err
	}
	if released {
		s.metrics.actions.WithLabelValues(r.action, "released", "").Inc()
	}
	return respond(c, releaseAnswer{released})
}

// resetAction forgets what an action has counted for a subject.
func (s *Server) resetAction(c *fiber.Ctx) error {
	limiter, err := s.action(c)
	if err != nil {
		return err
	}
	var body subjectResetBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	requestOf(c).subject = s.names.subject(*body.Subject)
	return s.forget(c, "action", requestOf(c).action, limiter, *body.Subject, body.Reason)
}

// forget has the limiter of an action or a rule forget a key, and writes it to the audit log.
func (s *Server) forget(c *fiber.Ctx, of, name string, limiter throttle.Limiter, key, reason string) error {
	r := requestOf(c)
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
	answer := resetAnswer{Subject: r.subject, Cleared: cleared}
	if of == "rule" {
		answer.Rule = name
	} else {
		answer.Action = name
	}
	return respond(c, answer)
}
