package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	return slog.New(kept{newHandler(c, keeping{to}, slog.LevelInfo), to}).With("audit", true)
}

func newHandler(c *config.Config, to io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" {
		return slog.NewTextHandler(to, options)
	}
	return slog.NewJSONHandler(to, options)
}

// logHandler delays the lines of requests at both doors, unless they are warnings or errors.
type logHandler struct {
	slog.Handler
	requests slog.Handler
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelWarn && (record.Message == "request" || record.Message == "submission") {
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
		line.Attr(attr)
	}
	_, err := l.to.Write(append(line.End(), '\n'))
	return err
}

var lines = sync.Pool{New: func() any { return new(wire.Object) }}

// logOutput writes all lines of the log, in their order, in a goroutine of its own: a reader that stalls
// delays nothing but the audit log. To write a line costs a system call, so those of requests are
// delayed, and many are written at once.
type logOutput struct {
	to      io.Writer
	journal bool          // it is systemd's
	wake    chan struct{} // has an entry when lines are to be written
	dropped prometheus.Counter

	mu              sync.Mutex
	waiting         []byte
	queued, written int64         // bytes so far
	progress        chan struct{} // closed when more is written
}

const (
	logDelay = 100 * time.Millisecond
	// Of so many bytes the lines of requests are written at once. They find no room beyond
	// requestRoom, and other lines but those of the audit log none beyond logRoom.
	logBatch, requestRoom, logRoom = 64 << 10, 1 << 20, 2 << 20
	// flushTimeout bounds the writing of the last lines.
	flushTimeout = time.Second
)

func newLogOutput(to io.Writer) *logOutput {
	o := &logOutput{to: to, journal: toJournal(to), wake: make(chan struct{}, 1), progress: make(chan struct{})}
	o.dropped = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mailgate_log_lines_dropped_total", Help: "Lines of the log that found no room because its reader stalls. Audit lines are never dropped."})
	go o.write()
	return o
}

// write writes what is waiting, as long as the process lives. It ignores an error, as slog does: the log
// has no reader.
func (o *logOutput) write() {
	var lines []byte
	for range o.wake {
		o.mu.Lock()
		lines, o.waiting = o.waiting, lines[:0]
		o.mu.Unlock()
		if len(lines) == 0 { // they were written while this was woken
			continue
		}
		text := lines
		if o.journal {
			text = prioritized(lines)
		}
		_, _ = o.to.Write(text)
		o.mu.Lock()
		o.written += int64(len(lines))
		close(o.progress)
		o.progress = make(chan struct{})
		o.mu.Unlock()
	}
}

// prioritized puts in front of each line of the log the priority by which the journal of systemd knows its level.
func prioritized(lines []byte) (all []byte) {
	for line := range bytes.Lines(lines) {
		_, level, _ := bytes.Cut(line, []byte("level"))
		priority := "<6>"
		switch level = bytes.TrimLeft(level, `":=`); {
		case bytes.HasPrefix(level, []byte("ERROR")):
			priority = "<3>"
		case bytes.HasPrefix(level, []byte("WARN")):
			priority = "<4>"
		case bytes.HasPrefix(level, []byte("DEBUG")):
			priority = "<7>"
		}
		all = append(append(all, priority...), line...)
	}
	return all
}

// add queues a line if there is room for it, and reports how many bytes are waiting then.
func (o *logOutput) add(line []byte, room int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting)+len(line) > room {
		o.dropped.Inc()
		return room
	}
	o.waiting = append(o.waiting, line...)
	o.queued += int64(len(line))
	return len(o.waiting)
}

func (o *logOutput) writeNow() {
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// Write queues a line to be written at once.
func (o *logOutput) Write(line []byte) (int, error) {
	o.add(line, logRoom)
	o.writeNow()
	return len(line), nil
}

// flush waits until all lines are written that were queued before.
func (o *logOutput) flush(ctx context.Context) error {
	o.writeNow()
	o.mu.Lock()
	end := o.queued
	o.mu.Unlock()
	for {
		o.mu.Lock()
		written, progress := o.written, o.progress
		o.mu.Unlock()
		if written >= end {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("the reader of the log stalls: %w", ctx.Err())
		}
	}
}

// close writes the last lines, if their reader lets it.
func (o *logOutput) close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = o.flush(ctx)
}

// delayed writes lines within logDelay.
type delayed struct{ *logOutput }

// Write delays a line.
func (d delayed) Write(line []byte) (int, error) {
	switch n := d.add(line, requestRoom); {
	case n >= logBatch:
		d.writeNow()
	case n == len(line): // it is the first
		time.AfterFunc(logDelay, d.writeNow)
	}
	return len(line), nil
}

// kept is the handler of lines that are never dropped. Handle returns when the line is written.
type kept struct {
	slog.Handler
	to *logOutput
}

// Handle implements slog.Handler.
func (k kept) Handle(ctx context.Context, record slog.Record) error {
	if err := k.Handler.Handle(ctx, record); err != nil {
		return err
	}
	return k.to.flush(ctx)
}

// WithAttrs implements slog.Handler.
func (k kept) WithAttrs(attrs []slog.Attr) slog.Handler {
	return kept{k.Handler.WithAttrs(attrs), k.to}
}

// keeping queues every line.
type keeping struct{ *logOutput }

// Write queues a line.
func (k keeping) Write(line []byte) (int, error) {
	k.add(line, math.MaxInt)
	return len(line), nil
}
