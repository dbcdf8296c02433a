package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
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
	return logging{to, newHandler(c, &atOnce{logOutput: to, room: logRoom}, level), outcomeLog{to, level, c.LogFormat == "text"}}
}

// newAudit returns the log of what operators did, whatever the log level.
func newAudit(c *config.Config, to *logOutput) *slog.Logger {
	return slog.New(kept{newHandler(c, &atOnce{logOutput: to, room: math.MaxInt}, slog.LevelInfo), to}).With("audit", true)
}

// newHandler writes one line for each event.
func newHandler(c *config.Config, to *atOnce, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" {
		return leveled{slog.NewTextHandler(to, options), to}
	}
	return leveled{slog.NewJSONHandler(to, options), to}
}

// leveled is a handler that tells its writer the level of a line.
type leveled struct {
	slog.Handler
	to *atOnce
}

// Handle implements slog.Handler.
func (l leveled) Handle(ctx context.Context, record slog.Record) error {
	l.to.one.Lock()
	defer l.to.one.Unlock()
	l.to.level = record.Level
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attrs), l.to}
}

// WithGroup implements slog.Handler.
func (l leveled) WithGroup(name string) slog.Handler { return leveled{l.Handler.WithGroup(name), l.to} }

// atOnce writes lines at once.
type atOnce struct {
	*logOutput
	room  int
	one   sync.Mutex // held while a line is written
	level slog.Level // of it
}

// Write queues a line to be written at once.
func (a *atOnce) Write(line []byte) (int, error) {
	a.add(a.level, line, a.room)
	a.writeNow()
	return len(line), nil
}

// outcomeLog writes the lines of outcomes: within logDelay, unless they are warnings or errors.
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
	if o.Level >= slog.LevelWarn {
		l.to.add(o.Level, line, logRoom)
		l.to.writeNow()
		return
	}
	switch n, first := l.to.add(o.Level, line, requestRoom); {
	case n >= logBatch:
		l.to.writeNow()
	case first: // since the last ones were written
		time.AfterFunc(logDelay, l.to.writeNow)
	}
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
		_, _ = o.to.Write(lines)
		o.mu.Lock()
		o.written += int64(len(lines))
		close(o.progress)
		o.progress = make(chan struct{})
		o.mu.Unlock()
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

// add queues a line if there is room for it, and reports how many bytes are waiting then, and whether none were before.
func (o *logOutput) add(level slog.Level, line []byte, room int) (waiting int, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting)+len(line) > room {
		o.dropped.Inc()
		return room, false
	}
	before := len(o.waiting)
	if o.journal {
		o.waiting = append(o.waiting, priority(level)...)
	}
	o.waiting = append(o.waiting, line...)
	o.queued += int64(len(o.waiting) - before)
	return len(o.waiting), before == 0
}

func (o *logOutput) writeNow() {
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
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
