package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/ledger"
)

// logging is where lines go: those of outcomes, and all others.
type logging struct {
	output   *logOutput
	handler  slog.Handler
	outcomes ledger.Log
}

func newLogging(c *config.Config, to *logOutput) logging {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // it was validated
	return logging{to, newHandler(c, &lines{logOutput: to}, level), outcomeLog{to, level, c.LogFormat == "text"}}
}

// newAudit returns the log of what operators did, whatever the log level.
func newAudit(c *config.Config, to *logOutput) *slog.Logger {
	return slog.New(newHandler(c, &lines{logOutput: to, audit: true}, slog.LevelInfo)).With("audit", true)
}

// newHandler writes one line for each event.
func newHandler(c *config.Config, to *lines, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" {
		return handler{slog.NewTextHandler(to, options), to}
	}
	return handler{slog.NewJSONHandler(to, options), to}
}

// handler is a handler that tells its writer the level of a line. That of the audit log waits until the line is written.
type handler struct {
	slog.Handler
	to *lines
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, record slog.Record) error {
	h.to.one.Lock()
	h.to.level = record.Level
	err := h.Handler.Handle(ctx, record)
	h.to.one.Unlock()
	if err != nil || !h.to.audit {
		return err
	}
	return h.to.flush(ctx)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.to}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name), h.to} }

// lines is the writer of a handler.
type lines struct {
	*logOutput
	audit bool
	one   sync.Mutex // held while a line is written
	level slog.Level // of it
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.add(l.level, line, l.audit)
	return len(line), nil
}

// outcomeLog writes the lines of outcomes.
type outcomeLog struct {
	to    *logOutput
	level slog.Level
	text  bool
}

// Enabled implements ledger.Log.
func (l outcomeLog) Enabled(level slog.Level) bool { return level >= l.level }

// Line implements ledger.Log.
func (l outcomeLog) Line(o *ledger.Outcome, line []byte) {
	if l.text {
		line = asText(line)
	}
	l.to.add(o.Level, line, false)
}

// asText returns a line as slog.TextHandler writes it.
func asText(line []byte) (text []byte) {
	members := jsontext.NewDecoder(bytes.NewReader(line))
	_, _ = members.ReadToken() // the brace; it is JSON of this program
	for members.PeekKind() == '"' {
		name, _ := members.ReadToken()
		key := name.String()
		value, _ := members.ReadToken()
		word := value.String()
		if word == "" || strings.ContainsFunc(word, func(c rune) bool { return c <= ' ' || c == '"' || c == '=' || !unicode.IsPrint(c) }) {
			word = strconv.Quote(word)
		}
		text = append(append(append(append(text, key...), '='), word...), ' ')
	}
	text[len(text)-1] = '\n'
	return text
}

// logOutput writes all lines of the log, in their order, in a goroutine of its own: a reader that stalls
// delays nothing but the audit log. To write a line costs a system call, so lines are delayed, and many are written
// at once. Warnings and errors are not delayed.
type logOutput struct {
	to      io.Writer
	journal bool          // it is systemd's
	wake    chan struct{} // has an entry when lines are to be written
	dropped prometheus.Counter

	mu      sync.Mutex
	waiting []byte
	written chan struct{} // closed when what is waiting is written
}

const (
	logDelay = 100 * time.Millisecond
	// Of so many bytes lines are written at once. They find no room beyond logRoom; warnings and errors have as much again.
	logBatch, logRoom = 64 << 10, 1 << 20
	// flushTimeout bounds the writing of the last lines.
	flushTimeout = time.Second
)

func newLogOutput(to io.Writer) *logOutput {
	o := &logOutput{to: to, journal: toJournal(to), wake: make(chan struct{}, 1), written: make(chan struct{})}
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
		written := o.written
		lines, o.waiting, o.written = o.waiting, lines[:0], make(chan struct{})
		o.mu.Unlock()
		if len(lines) > 0 {
			_, _ = o.to.Write(lines)
		}
		close(written)
	}
}

// priority is that of a line by which the journal of systemd knows its level.
func priority(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "<3>"
	case level >= slog.LevelWarn:
		return "<4>"
	case level >= slog.LevelInfo:
		return "<6>"
	}
	return "<7>"
}

// add queues a line if there is room for it. One of the audit log is flushed by its handler.
func (o *logOutput) add(level slog.Level, line []byte, audit bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, room := len(o.waiting), logRoom
	if level >= slog.LevelWarn {
		room *= 2
	}
	if before+len(line) > room && !audit {
		o.dropped.Inc()
		return
	}
	if o.journal {
		o.waiting = append(o.waiting, priority(level)...)
	}
	o.waiting = append(o.waiting, line...)
	switch {
	case level >= slog.LevelWarn || len(o.waiting) >= logBatch:
		o.writeNow()
	case before == 0:
		time.AfterFunc(logDelay, o.writeNow)
	}
}

func (o *logOutput) writeNow() {
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// flush waits until all lines are written that were queued before.
func (o *logOutput) flush(ctx context.Context) error {
	o.mu.Lock()
	written := o.written
	o.mu.Unlock()
	o.writeNow()
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the reader of the log stalls: %w", ctx.Err())
	}
}

// close writes the last lines, if their reader lets it.
func (o *logOutput) close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = o.flush(ctx)
}
