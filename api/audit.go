package api

import (
	"log/slog"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/wire"
)

// auditReady refuses an action of an operator that could not be recorded.
func (s *Server) auditReady(r *request) error {
	if err := s.with.Audit.Ready(r.ctx); err != nil {
		return &problem{kind: storeUnavailable, detail: "The audit log cannot be written. Nothing was done.", retryAfter: soon, cause: err}
	}
	return nil
}

// audit records what an operator did, and from where. It also records what failed, since that may
// have been done in part.
func (s *Server) audit(r *request, what *ledger.What, err error, about ...slog.Attr) {
	did := what.Word
	attrs := append([]slog.Attr{
		slog.String("request_id", r.RequestID),
		slog.String("key", r.Key),
		slog.String("from", r.From.String()),
	}, about...)
	level := slog.LevelInfo
	if err != nil {
		level, did = slog.LevelWarn, did+", not completed"
		attrs = append(attrs, slog.String("cause", err.Error()))
	} else {
		r.What = what
	}
	s.with.Audit.Log.LogAttrs(r.ctx, level, did, attrs...)
	entry := wire.Object(",")
	for _, a := range append(attrs, slog.String("outcome", did), slog.String("door", r.Door)) {
		entry.Attr(a)
	}
	s.with.Ledger.Audited.Add(s.with.Now(), entry[1:])
}
