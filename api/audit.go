package api

import (
	"log/slog"
	"slices"
)

// outcomeSuppressed is that of whatever puts an address on the suppression list.
const outcomeSuppressed = "recipient suppressed"

// auditReady refuses an action of an operator that could not be recorded.
func (s *Server) auditReady(r *request) error {
	if err := s.with.AuditReady(r.ctx); err != nil {
		return &problem{kind: storeUnavailable, detail: "The audit log cannot be written. Nothing was done.", retryAfter: soon, cause: err}
	}
	return nil
}

// audit records what an operator did, and from where. It also records what failed, since that may
// have been done in part.
func (s *Server) audit(r *request, what string, err error, about ...slog.Attr) {
	if err == nil {
		r.outcome = what
	}
	for _, a := range about {
		if slices.Contains([]string{"reason", "source", "cleared", "guesses_cleared"}, a.Key) { // the log line has the others
			r.only = append(r.only, a)
		}
	}
	attrs := append([]slog.Attr{
		slog.String("request_id", r.id),
		slog.String("key", r.key),
		slog.String("from", r.client.String()),
	}, about...)
	level := slog.LevelInfo
	if err != nil {
		level, what = slog.LevelWarn, what+", not completed"
		attrs = append(attrs, slog.String("cause", err.Error()))
	}
	s.with.Audit.LogAttrs(r.ctx, level, what, attrs...)
	s.audited.Add(s.with.Now(), append(attrs, slog.String("outcome", what), slog.String("door", r.door)))
}
