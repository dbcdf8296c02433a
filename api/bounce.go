package api

import (
	"context"
	"log/slog"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/suppression/bounce"
)

// takeReport applies the events of a genuine call. What it cannot read is counted and is no error, as a provider
// switches a hook off that keeps failing.
func (s *Server) takeReport(r *request, hook hooks.Reporter) error {
	r.ctx, r.cancel = context.WithDeadline(s.traced(r, systems), r.began.Add(s.with.SendDeadline))
	if err := s.enter(r.c, r, systems); err != nil {
		return err
	}
	if err := checkEncoding(r.c); err != nil {
		return err
	}
	events, err := hook.Events(r.ctx, r.call)
	if err != nil {
		return repeat(err)
	}
	ctx, durable := cache.Batch(r.ctx)
	for _, e := range events {
		if err := s.applyBounce(ctx, r, e); err != nil {
			return err
		}
	}
	return durable(r.ctx)
}

// answerReport answers a provider: where it goes by a status of its own, that is the whole answer.
func answerReport(r *request, hook hooks.Reporter, err error) error {
	if err == nil {
		return nil
	}
	p := problemOf(err)
	status := hook.Status(p.kind.status)
	if status == p.kind.status && p.kind != unauthorized {
		return err
	}
	r.note(p)
	r.c.Status(status)
	return nil
}

// repeat asks for a call again, after hooks.ErrLater.
func repeat(err error) error {
	return &problem{kind: busy, retryAfter: soon, detail: "This call cannot be checked yet. Repeat it.", cause: err}
}

func (s *Server) applyBounce(ctx context.Context, r *request, e bounce.Event) error {
	outcome, to, err := s.with.Bounces.Apply(ctx, s.with.Identity, r.key, e)
	if err != nil {
		return err
	}
	s.metrics.bounces.WithLabelValues(r.key, string(e.Kind), string(outcome)).Inc()
	if !to.IsZero() {
		attrs := []slog.Attr{slog.String("request_id", r.id), slog.String("from", r.client.String()), slog.String("key", r.key),
			slog.Any("mailbox", to), slog.String("outcome", "bounced"), slog.String("reason", string(e.Kind)), slog.String("door", r.key), slog.String("cause", string(outcome))}
		if outcome == bounce.Repeated || outcome == bounce.Unproven {
			s.recent.Add(s.with.Now(), attrs)
		} else {
			s.keepEntry(attrs)
		}
	}
	if outcome == bounce.Applied {
		if r.outcome != "" { // the log line is about the last one
			s.keepPart(r)
		}
		r.mailbox = to
		s.audit(r, outcomeSuppressed, nil, slog.String("reason", string(bounce.Reasons[e.Kind])), slog.String("source", r.key), slog.String("mailbox", to.Hash()))
	}
	return nil
}
