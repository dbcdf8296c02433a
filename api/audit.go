package api

import "log/slog"

// audit records what an operator did, and from where. What has failed may be done in part, and
// the answer to a repeated request does not mention that part, so it is recorded as well.
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
