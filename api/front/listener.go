package front

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// listener continues after a shortage of files or memory, at which fasthttp would stop serving. After Close it
// still serves the connections that the system has accepted. The system would otherwise reset them, and lose requests
// that proxies do not repeat.
type listener struct {
	net.Listener
	tcp    *net.TCPListener // nil: Close ends it at once
	log    *slog.Logger
	ending atomic.Bool
	close  sync.Once
}

// Accept returns the next connection once there is room for it.
func (l *listener) Accept() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := l.accept()
		if err == nil {
			return &conn{Conn: c}, nil
		}
		if !isShortage(err) {
			return nil, err
		}
		l.log.Warn("no connection can be accepted", "cause", err.Error(), "again_in", pause)
		time.Sleep(pause)
	}
}

// past is a deadline that ends Accept. A connection that the system has accepted comes at once, within settled.
var past = time.Unix(1, 0)

const settled = quiet / 2

func (l *listener) accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if !l.ending.Load() || err == nil {
		return c, err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = l.tcp.SetDeadline(time.Now().Add(settled)) // with one in the past nothing is accepted
		c, err = l.Listener.Accept()
		_ = l.tcp.SetDeadline(past)
	}
	if err != nil {
		return nil, errors.Join(net.ErrClosed, l.end())
	}
	return c, nil
}

func isShortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// conn records what the library does not say. Only its own goroutine reads.
type conn struct {
	net.Conn
	heard    bool // something has arrived
	timedOut bool // the last read timed out
	bareLF   bool // the line of a request ended without a CR
	tail     [len(version) - 1]byte
}

// version ends the first line of a request, with any digits.
const version = "HTTP/x.x\n"

// Read reads and records how that ended.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard = c.heard || n > 0
	c.timedOut = errors.Is(err, os.ErrDeadlineExceeded)
	c.findBareLF(b[:n])
	return n, err
}

// findBareLF looks for a first line that ends without a CR, which is not in the header that the library
// keeps. No body that is accepted has these bytes: its strings have no line ends.
func (c *conn) findBareLF(b []byte) {
	const end = len(c.tail)
	var seam [2 * end]byte
	seamed := append(append(seam[:0], c.tail[:]...), b[:min(end, len(b))]...)
	c.bareLF = c.bareLF || endsVersion(seamed) || endsVersion(b)
	if len(b) >= end {
		seamed = b
	}
	copy(c.tail[:], seamed[len(seamed)-end:])
}

func endsVersion(b []byte) bool {
	for {
		_, after, found := bytes.Cut(b, []byte("HTTP/"))
		if !found || len(after) > 3 && after[3] == '\n' {
			return found
		}
		b = after
	}
}

// Close has Accept end the listener. Closed again, as by fasthttp at its own shutdown, it ends at once.
func (l *listener) Close() error {
	if l.tcp != nil && !l.ending.Swap(true) && l.tcp.SetDeadline(past) == nil {
		return nil
	}
	return l.end()
}

func (l *listener) end() (err error) {
	l.close.Do(func() { err = l.Listener.Close() })
	return err
}
