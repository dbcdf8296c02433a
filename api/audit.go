package api

import (
	"context"
	"log/slog"
)

// audit writes down what an operator did, who and from where. What has failed may be done in
// part, and who asks again is told nothing of that part, so it is written down as well.
func (s *Server) audit(ctx context.Context, c *call, what string, err error, about ...slog.Attr) {
	attrs := append([]slog.Attr{
		slog.String("request_id", c.requestID),
		slog.String("key", c.key),
		slog.String("from", c.client.String()),
	}, about...)
	level := slog.LevelInfo
	if err != nil {
		level, what = slog.LevelWarn, what+", not completed"
		attrs = append(attrs, slog.String("cause", err.Error()))
	}
	s.with.Audit.LogAttrs(ctx, level, what, attrs...)
}
