package api

import (
	"log/slog"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/wire"
)

// auditReady is a step of what changes something for an operator: it refuses what could not be recorded.
func (s *Server) auditReady(r *request) error {
	if err := s.with.Audit.Ready(r.ctx); err != nil {
		return &problem{kind: storeUnavailable, detail: "The audit log cannot be written. Nothing was done.", retryAfter: soon, cause: err}
	}
	return nil
}

// audit records what the request has changed, for whom, and from where. It also records what failed, since that may
// have been done in part, and returns the problem of that.
func (s *Server) audit(r *request, what *ledger.What, err error) error {
	var attrs []slog.Attr
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("request_id", r.RequestID)
	text("key", r.Key)
	text("from", r.From.String())
	text("rule", r.counted.Name)
	text("action", r.Action)
	text("subject", r.Subject)
	if !r.Mailbox.IsZero() {
		text("mailbox", r.Mailbox.Hash())
	}
	text("reason", r.Reason)
	text("source", r.Source)
	for _, of := range r.Cleared {
		attrs = append(attrs, slog.Int(of.Name, of.Count))
	}
	level, did := slog.LevelInfo, what.Word
	if err == nil {
		r.What = what
	} else {
		level, did = slog.LevelWarn, did+", not completed"
		text("cause", err.Error())
		err = explain(err, what.Detail)
	}
	s.with.Audit.Log.LogAttrs(r.ctx, level, did, attrs...)
	text("outcome", did)
	text("door", r.Door)
	entry := wire.Object(",") // which has the first member begin with a comma
	for _, attr := range attrs {
		entry.Any(attr.Key, attr.Value.Any())
	}
	s.with.Ledger.Audited.Add(s.with.Now(), entry[1:])
	return err
}
