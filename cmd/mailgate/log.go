package main

import (
	"io"
	"log/slog"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// newLog is the program's log, one line an event.
func newLog(s *settings.Settings, to io.Writer) *slog.Logger {
	return slog.New(logHandler(s, to, s.LogLevel))
}

// newAudit is the log of what operators did. It is never too quiet to have it.
func newAudit(s *settings.Settings, to io.Writer) *slog.Logger {
	return slog.New(logHandler(s, to, slog.LevelInfo)).With("audit", true)
}

func logHandler(s *settings.Settings, to io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "text" {
		return slog.NewTextHandler(to, options)
	}
	return slog.NewJSONHandler(to, options)
}
