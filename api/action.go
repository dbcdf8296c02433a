package api

import (
	"context"
	"log/slog"
	"strings"
	"unicode"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// maxSubject is how long the subject of an action may be, in bytes.
const maxSubject = 256

// An actionRequest is what any of the routes of an action asks for.
type actionRequest struct {
	name    string
	limiter throttle.Limiter
	subject string
	key     string      // the Idempotency-Key of a take, if it has one
	id      throttle.ID // of a release
	reason  string      // of a reset
}

func readPeek(in *incoming) (actionRequest, error) {
	return readActionWith(in, nil, nil)
}

func readTake(in *incoming) (actionRequest, error) {
	key, err := readKey(in)
	if err != nil {
		return actionRequest{}, err
	}
	q, err := readActionWith(in, nil, nil)
	q.key = key
	return q, err
}

func readActionRelease(in *incoming) (actionRequest, error) {
	var id text
	q, err := readActionWith(in, []field{{name: "id", text: &id}}, func() []fieldProblem {
		if _, err := throttle.ParseID(id.value); err != nil {
			return []fieldProblem{{"id", "invalid", "id must be one that a take has answered with."}}
		}
		return nil
	})
	if err == nil {
		q.id = throttle.ID([]byte(id.value))
	}
	return q, err
}

func readActionReset(in *incoming) (actionRequest, error) {
	var reason text
	q, err := readActionWith(in, []field{{name: "reason", text: &reason}}, func() []fieldProblem { return reasonProblems(reason) })
	q.reason = reason.value
	return q, err
}

// readActionWith reads the action of the path, the subject, and what else a route has,
// which check looks at.
func readActionWith(in *incoming, more []field, check func() []fieldProblem) (q actionRequest, err error) {
	q.name = string(in.parameter)
	q.limiter = in.live.Actions[q.name]
	if q.limiter == nil {
		return q, &problem{kind: unknownAction}
	}
	var subject text
	if err := readBody(in, append([]field{{name: "subject", text: &subject}}, more...)); err != nil {
		return q, err
	}
	q.subject = subject.value
	wrong := subjectProblems(subject)
	if check != nil {
		wrong = append(wrong, check()...)
	}
	if wrong != nil {
		return q, &problem{kind: invalid, fields: wrong}
	}
	return q, nil
}

func subjectProblems(subject text) []fieldProblem {
	reason, detail := "", ""
	switch {
	case !subject.given:
		reason, detail = "missing", "subject is missing."
	case subject.value == "":
		reason, detail = "empty", "subject is empty."
	case len(subject.value) > maxSubject:
		reason, detail = "too-long", "subject may have 256 bytes."
	case strings.ContainsFunc(subject.value, unicode.IsControl):
		reason, detail = "invalid", "subject has a control character."
	default:
		return nil
	}
	return []fieldProblem{{"subject", reason, detail}}
}

// about tells the log which action it is, and of whom.
func (s *Server) about(c *call, q actionRequest) {
	c.action, c.subject = q.name, s.names.subject(q.subject)
}

// acted is the quota of an action for a subject.
type acted struct {
	charge
	name string
}

// takeAction admits the action once, or says no. With a key it is charged under an id that
// follows from it, so a take that is asked again is known and not charged again. Then what may
// have been charged unheard is not given back: whoever asks again would lose the place that he
// was told of.
func (s *Server) takeAction(ctx context.Context, c *call, q actionRequest) (acted, error) {
	s.about(c, q)
	c.id = throttle.NewID()
	if q.key != "" {
		c.id = s.names.take(idempotency.Name{Caller: c.caller(), Key: q.key})
	}
	v, err := q.limiter.Take(ctx, q.subject, c.id)
	if err != nil {
		if q.key == "" {
			s.delivery.GiveBack(q.limiter, q.subject, c.id, slog.Group("", "action", q.name, "subject", c.subject))
		}
		s.metrics.acted(q.name, string(delivery.Storage), "")
		return acted{}, err
	}
	if v.Newest == 0 { // a counter
		c.id = idAt(v.At)
	}
	done := acted{charge{quota: quotaOfOne(q.name, c.subject, v), id: c.id}, q.name}
	c.note(&done.quota)
	if !v.Allowed {
		c.id, done.id = throttle.ID{}, throttle.ID{}
		done.whom, done.then = "the action "+q.name+" for this subject", "It may be taken again"
		s.metrics.acted(q.name, "denied", v.Limit)
		return acted{}, denied(&done.charge)
	}
	c.delay = v.Delay
	s.metrics.acted(q.name, "taken", "")
	return done, nil
}

// peekAction says what a take would be told, and records nothing.
func (s *Server) peekAction(ctx context.Context, c *call, q actionRequest) (acted, error) {
	s.about(c, q)
	v, err := q.limiter.Peek(ctx, q.subject)
	if err != nil {
		return acted{}, err
	}
	done := acted{charge{quota: quotaOfOne(q.name, c.subject, v)}, q.name}
	c.note(&done.quota)
	return done, nil
}

func writeActed(out *answer, done *acted) {
	out.show(&done.quota)
	id := ""
	if done.id.Valid() {
		id = done.id.String()
	}
	out.encode(struct {
		Allowed bool   `json:"allowed"`
		Action  string `json:"action"`
		ID      string `json:"id,omitempty"`
		Delay   int64  `json:"delay_ms,omitzero"`
		wire.Verdict
	}{done.decision.Allowed, done.name, id, done.decision.Verdict.Delay, out.told(&done.quota)})
}

// released reports whether there was a take to give back.
type released struct {
	Released bool `json:"released"`
}

// releaseAction gives a take back, because nothing came of it.
func (s *Server) releaseAction(ctx context.Context, c *call, q actionRequest) (released, error) {
	s.about(c, q)
	c.id = q.id
	done, err := q.limiter.Release(ctx, q.subject, throttle.Admission{ID: q.id, At: momentOf(q.id)})
	if err != nil {
		return released{}, err
	}
	if done {
		s.metrics.acted(q.name, "released", "")
	}
	return released{done}, nil
}

// clearing is how much was forgotten of what an action, or a rule, counted for a subject.
type clearing struct {
	Action  string `json:"action,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject"` // as the log calls it
	Cleared int    `json:"cleared"`
}

// resetAction forgets a subject and writes who did it and why.
func (s *Server) resetAction(ctx context.Context, c *call, q actionRequest) (clearing, error) {
	s.about(c, q)
	return s.forget(ctx, c, clearing{Action: q.name}, q.limiter, q.subject, q.reason)
}

// forget has a limiter forget a key, and writes it to the audit log.
func (s *Server) forget(ctx context.Context, c *call, done clearing, limiter throttle.Limiter, key, reason string) (_ clearing, err error) {
	done.Subject = c.subject
	done.Cleared, err = limiter.Reset(ctx, key)
	of, name := "action", done.Action
	if done.Rule != "" {
		of, name = "rule", done.Rule
	}
	s.audit(ctx, c, of+" reset", err,
		slog.String(of, name),
		slog.String("subject", done.Subject),
		slog.String("reason", reason),
		slog.Int("cleared", done.Cleared),
	)
	if err != nil {
		return clearing{}, inWords(err, notReset)
	}
	s.metrics.resets.Inc()
	return done, nil
}
