package cache

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"
)

// badgerLog passes on Badger's warnings and errors, but nothing of what is kept: keys are
// addresses, and in some of its lines are ranges of them.
type badgerLog struct{ log *slog.Logger }

func (b badgerLog) Errorf(format string, args ...any)   { b.say(slog.LevelError, format, args) }
func (b badgerLog) Warningf(format string, args ...any) { b.say(slog.LevelWarn, format, args) }
func (b badgerLog) Infof(format string, args ...any)    { b.say(slog.LevelDebug, format, args) }
func (b badgerLog) Debugf(string, ...any)               {}

func (b badgerLog) say(level slog.Level, format string, args []any) {
	if !b.log.Enabled(context.Background(), level) {
		return
	}
	said := make([]any, len(args))
	for i, arg := range args {
		said[i] = withoutKeys(arg)
	}
	b.log.Log(context.Background(), level, "data directory", "badger", strings.TrimSpace(fmt.Sprintf(format, said...)))
}

// withoutKeys is what may be said of an argument. A text can be a key however it looks, so
// only numbers stay, and what is known of an error.
func withoutKeys(arg any) any {
	switch arg := arg.(type) {
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, time.Duration:
		return arg
	case error:
		return words(causeOf(arg))
	}
	return words(unsaid)
}

const unsaid = "…"

// words are written as they are, whatever a format asks for.
type words string

// Format implements fmt.Formatter.
func (w words) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, string(w)) }

// causeOf is how an error ends, if it is with words that are known. Before them Badger
// writes what it was doing, and to which keys; its errors wrap no other.
func causeOf(err error) string {
	text := err.Error()
	for _, known := range []error{y.ErrChecksumMismatch, badger.ErrDBClosed, badger.ErrBlockedWrites} {
		if strings.HasSuffix(text, known.Error()) {
			return known.Error()
		}
	}
	for number := range mostErrno {
		if known := number.Error(); strings.HasSuffix(text, known) {
			return known
		}
	}
	return unsaid
}

// mostErrno is above every number by which a system tells a fault of its disks.
const mostErrno syscall.Errno = 134
