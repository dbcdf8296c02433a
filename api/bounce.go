package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/suppression/bounce"
)

// identifyBounces notes a genuine call of an email provider, as identifyHook does.
func (s *Server) identifyBounces(c *fiber.Ctx, r *request) {
	for _, hook := range s.with.BounceHooks {
		if c.Path() == "/hooks/"+hook.Name {
			var genuine bool
			if genuine, r.unverified = hook.Genuine(func(name string) string { return c.Get(name) }, c.Request().Body(), time.UnixMilli(s.with.Now())); genuine {
				r.shown = systems
			}
		}
	}
}

// takeBounces handles the calls of an email provider. What it cannot read is counted and answered with 200, as a
// provider switches a hook off that keeps failing.
func (s *Server) takeBounces(hook *bounce.Hook) fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := s.takeCall(c, hook)
		if p := problemOf(err); err != nil && p.kind.status == fiber.StatusServiceUnavailable && hook.Later != 0 {
			requestOf(c).note(p)
			c.Status(hook.Later)
			return nil
		}
		return err
	}
}

func (s *Server) takeCall(c *fiber.Ctx, hook *bounce.Hook) error {
	r := requestOf(c)
	if r.unverified != nil {
		return repeat(r.unverified)
	}
	if r.shown != systems {
		r.note(&problem{kind: unauthorized})
		c.Status(hook.Refused)
		return nil
	}
	r.key = hook.Name
	r.ctx, r.cancel = context.WithDeadline(s.traced(r, systems), r.began.Add(s.with.SendDeadline))
	if err := s.enter(c, r, systems); err != nil {
		return err
	}
	if err := checkEncoding(c); err != nil {
		return err
	}
	events, err := hook.Read(r.ctx, c.Request().Body())
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

// repeat asks a provider for its call again, after bounce.ErrLater.
func repeat(err error) error {
	return &problem{kind: busy, retryAfter: soon, detail: "The provider has not answered a question about this call. Repeat it.", cause: err}
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
