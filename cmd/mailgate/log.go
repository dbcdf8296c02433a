package main

import (
	"io"
	"log/slog"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// newLog is the program's log, one line an event.
func newLog(s *settings.Settings, to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}
