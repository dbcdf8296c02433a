package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/wire"
)

// newLogHandler writes one line for each event.
func newLogHandler(c *config.Config, to *logOutput) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // it was validated
	h := logHandler{newHandler(c, to, level), newHandler(c, delayed{to}, level)}
	if c.LogFormat == "json" {
		h.requests = requestLog{h.requests, delayed{to}}
	}
	return h
}

// newAudit returns the log of what operators did, whatever the log level.
func newAudit(c *config.Config, to *logOutput) *slog.Logger {
	return slog.New(newHandler(c, to, slog.LevelInfo)).With("audit", true)
}

func newHandler(c *config.Config, to io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" {
		return slog.NewTextHandler(to, options)
	}
	return slog.NewJSONHandler(to, options)
}

// logHandler delays the lines of requests, unless they are warnings or errors.
type logHandler struct {
	slog.Handler
	requests slog.Handler
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelWarn && record.Message == "request" {
		return h.requests.Handle(ctx, record)
	}
	return h.Handler.Handle(ctx, record)
}

// requestLog writes the lines of requests as slog.JSONHandler does. With that a refusal would take a
// tenth longer.
type requestLog struct {
	slog.Handler
	to delayed
}

// Handle implements slog.Handler.
func (l requestLog) Handle(_ context.Context, record slog.Record) error {
	line := lines.Get().(*wire.Object)
	defer lines.Put(line)
	*line = (*line)[:0]
	line.String(slog.TimeKey, record.Time.Format(time.RFC3339Nano))
	line.String(slog.LevelKey, record.Level.String())
	line.String(slog.MessageKey, record.Message)
	for attr := range record.Attrs {
		switch value := attr.Value.Resolve(); value.Kind() {
		case slog.KindString:
			line.String(attr.Key, value.String())
		case slog.KindInt64:
			line.Int(attr.Key, value.Int64())
		case slog.KindFloat64:
			line.Float(attr.Key, value.Float64())
		default:
			line.Any(attr.Key, value.Any())
		}
	}
	_, err := l.to.Write(append(line.End(), '\n'))
	return err
}

var lines = sync.Pool{New: func() any { return new(wire.Object) }}

// logOutput is where all lines of the log go, in their order. To write a line costs a system call, so
// those of requests are delayed, and many are written at once.
type logOutput struct {
	to      io.Writer
	mu      sync.Mutex
	waiting []byte // the delayed lines
}

const (
	logDelay    = 100 * time.Millisecond
	mostWaiting = 64 << 10
)

// Write writes a line, and the delayed ones before it.
func (o *logOutput) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, line...)
	return len(line), o.write()
}

// flush writes the delayed lines. It ignores an error, as slog does: the log has no reader.
func (o *logOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.write()
}

func (o *logOutput) write() (err error) {
	if len(o.waiting) > 0 {
		_, err = o.to.Write(o.waiting)
		o.waiting = o.waiting[:0]
	}
	return err
}

// delayed writes lines within logDelay.
type delayed struct{ *logOutput }

// Write delays a line.
func (d delayed) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		time.AfterFunc(logDelay, d.flush)
	}
	d.waiting = append(d.waiting, line...)
	if len(d.waiting) < mostWaiting {
		return len(line), nil
	}
	return len(line), d.write()
}
