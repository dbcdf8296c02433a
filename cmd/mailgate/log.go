package main

import (
	"io"
	"log/slog"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

// newLogHandler writes one line for each event.
func newLogHandler(c *config.Config, to io.Writer) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // it was validated
	return newHandler(c, to, level)
}

// newAudit is the log of what operators did, whatever the log level.
func newAudit(c *config.Config, to io.Writer) *slog.Logger {
	return slog.New(newHandler(c, to, slog.LevelInfo)).With("audit", true)
}

func newHandler(c *config.Config, to io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" {
		return slog.NewTextHandler(to, options)
	}
	return slog.NewJSONHandler(to, options)
}
