package api

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/suppression/bounce"
)

// takeReport applies the events of a genuine call. What it cannot read is counted and is no error, as a provider
// switches a hook off that keeps failing.
func (s *Server) takeReport(r *request, hook hooks.Reporter) error {
	if err := s.enter(r, systems, r.Began.Add(s.with.SendDeadline)); err != nil {
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

// answerReport answers a provider. If the provider needs another status for an error, that status is the whole answer.
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
	outcome, to, err := s.with.Bounces.Apply(ctx, s.with.Identity, r.Key, e)
	if err != nil {
		return err
	}
	s.metrics.bounces.WithLabelValues(r.Key, string(e.Kind), string(outcome)).Inc()
	if !to.IsZero() {
		what := ledger.Bounced
		if outcome == bounce.Repeated || outcome == bounce.Unproven {
			what = ledger.Reread
		}
		s.with.Ledger.Note(&ledger.Outcome{
			What: what, Door: r.Door, Key: r.Key, RequestID: r.RequestID, From: r.From, Mailbox: to, Reason: string(e.Kind), Cause: errors.New(string(outcome)), Unlogged: true,
		})
	}
	if outcome == bounce.Applied {
		if r.What != nil {
			s.noteEarlier(r)
		}
		r.Mailbox, r.Reason, r.Source = to, string(bounce.Reasons[e.Kind]), r.Key
		return s.audit(r, ledger.Suppression, nil)
	}
	return nil
}
