package api

import (
	"context"
	"log/slog"
	"strconv"
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
	if v.Sent == 0 { // a counter
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
	out.json()
	out.show(&done.quota)
	b := append(out.body, `{"allowed":`...)
	b = strconv.AppendBool(b, done.decision.Allowed)
	b = append(b, `,"action":`...)
	b = wire.AppendString(b, done.name)
	if done.id.Valid() {
		b = append(b, `,"id":"`...)
		b = append(b, done.id[:]...)
		b = append(b, '"')
	}
	if delay := done.decision.Verdict.Delay; delay > 0 {
		b = append(b, `,"delay_ms":`...)
		b = strconv.AppendInt(b, delay, 10)
	}
	b = append(b, ',')
	out.body = append(appendQuota(b, &done.quota, out), '}')
}

// releaseAction gives a take back, because nothing came of it.
func (s *Server) releaseAction(ctx context.Context, c *call, q actionRequest) (bool, error) {
	s.about(c, q)
	c.id = q.id
	released, err := q.limiter.Release(ctx, q.subject, throttle.Admission{ID: q.id, At: momentOf(q.id)})
	if err != nil {
		return false, err
	}
	if released {
		s.metrics.acted(q.name, "released", "")
	}
	return released, nil
}

func writeReleased(out *answer, released *bool) {
	out.json()
	b := append(out.body, `{"released":`...)
	out.body = append(strconv.AppendBool(b, *released), '}')
}

// A clearing is how much was forgotten of what an action, or a rule, counted for a subject.
type clearing struct {
	of, name, subject string // the subject as the log calls it
	counted           int
}

// resetAction forgets a subject and writes who did it and why.
func (s *Server) resetAction(ctx context.Context, c *call, q actionRequest) (clearing, error) {
	s.about(c, q)
	return s.forget(ctx, c, clearing{of: "action", name: q.name}, q.limiter, q.subject, q.reason)
}

// forget has a limiter forget a key, and writes it to the audit log.
func (s *Server) forget(ctx context.Context, c *call, done clearing, limiter throttle.Limiter, key, reason string) (_ clearing, err error) {
	done.subject = c.subject
	done.counted, err = limiter.Reset(ctx, key)
	s.audit(ctx, c, done.of+" reset", err,
		slog.String(done.of, done.name),
		slog.String("subject", done.subject),
		slog.String("reason", reason),
		slog.Int("cleared", done.counted),
	)
	if err != nil {
		return clearing{}, inWords(err, notReset)
	}
	s.metrics.resets.Inc()
	return done, nil
}

func writeClearing(out *answer, done *clearing) {
	out.json()
	b := append(out.body, `{"`+done.of+`":`...)
	b = wire.AppendString(b, done.name)
	b = append(b, `,"subject":`...)
	b = wire.AppendString(b, done.subject)
	b = append(b, `,"cleared":`...)
	b = strconv.AppendInt(b, int64(done.counted), 10)
	out.body = append(b, '}')
}
