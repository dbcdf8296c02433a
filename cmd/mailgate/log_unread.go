package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// mostUnread is how many bytes of the log wait while nobody reads it, and mostKept how many
	// with the lines that are not to be lost.
	mostUnread = 1 << 20
	mostKept   = 2 << 20
	// unreadPatience is how long anybody waits for that.
	unreadPatience = time.Second
)

// An unreadLog holds no request up for long where the log is not read: the pipe to a collector
// that hangs takes nothing more at some time, and whoever writes to it waits. Here he waits for
// his line a second at most, and not at all once the log hangs. What cannot be kept meanwhile is
// lost, and counted.
type unreadLog struct {
	to   io.Writer
	tell func(lost int) // how many lines were, once the log is read again
	lost atomic.Int64   // lines, since the start

	mu      sync.Mutex
	next    *lines    // nil if none wait
	now     *lines    // nil if none are being written
	since   time.Time // when that began
	missing int       // lines that were lost since the last word on it
}

// lines are some that are written at once.
type lines struct {
	text    []byte
	written chan struct{}
}

func newUnreadLog(to io.Writer) *unreadLog {
	return &unreadLog{to: to, tell: func(int) {}}
}

// counter counts the lines that were lost.
func (l *unreadLog) counter() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "mailgate_log_lines_lost_total",
		Help: "Lines of the log that were lost, as nobody read it.",
	}, func() float64 { return float64(l.lost.Load()) })
}

// Write implements io.Writer.
func (l *unreadLog) Write(line []byte) (int, error) {
	l.put(line, mostUnread)
	return len(line), nil
}

// put has a line written, or loses it where more than so much waits.
func (l *unreadLog) put(line []byte, most int) {
	l.add(line, most)
	l.flush()
}

func (l *unreadLog) add(line []byte, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &lines{written: make(chan struct{})}
	}
	if len(l.next.text)+len(line) > most {
		l.lose(line)
	} else {
		l.next.text = append(l.next.text, line...)
	}
	if l.now == nil {
		l.turn()
		go l.write()
	}
}

// turn has those that waited written now.
func (l *unreadLog) turn() { l.now, l.next, l.since = l.next, nil, time.Now() }

// write hands lines on as long as there are any.
func (l *unreadLog) write() {
	for now := l.now; now != nil; {
		_, err := l.to.Write(now.text)
		close(now.written)
		l.mu.Lock()
		lost := 0
		if err != nil {
			l.lose(now.text)
		} else {
			lost, l.missing = l.missing, 0
		}
		l.turn()
		now = l.now
		l.mu.Unlock()
		if lost > 0 {
			go l.tell(lost) // whose line is written here
		}
	}
}

// lose counts lines that nobody will read.
func (l *unreadLog) lose(text []byte) {
	n := bytes.Count(text, []byte("\n"))
	l.missing += n
	l.lost.Add(int64(n))
}

// flush waits until all that was written by now is, but not for ever.
func (l *unreadLog) flush() {
	l.mu.Lock()
	last, since := l.next, l.since
	if last == nil {
		last = l.now
	}
	l.mu.Unlock()
	if last == nil {
		return
	}
	patience := time.NewTimer(time.Until(since.Add(unreadPatience))) // who comes later waits for less
	defer patience.Stop()
	select {
	case <-last.written:
	case <-patience.C:
	}
}

// A keptLog is for lines that are not to be lost among others.
type keptLog struct{ *unreadLog }

// Write implements io.Writer.
func (l keptLog) Write(line []byte) (int, error) {
	l.put(line, mostKept)
	return len(line), nil
}
