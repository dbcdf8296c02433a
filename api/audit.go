package api

import "log/slog"

// audit records what an operator did, and from where. It also records what failed, since that may
// have been done in part.
func (s *Server) audit(r *request, what string, err error, about ...slog.Attr) {
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
}
