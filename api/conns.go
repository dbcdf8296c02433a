package api

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A gate is a listener that never has more than so many connections open. When all
// places are taken, the connection that has been idle longest makes room for the next;
// if every one is at work, the next waits. So silent connections cannot keep anybody
// out, and no number of them can use up the process's files.
type gate struct {
	net.Listener
	max int
	log *slog.Logger

	mu     sync.Mutex
	room   sync.Cond // a connection closed or went idle, or the gate closed
	open   map[*conn]struct{}
	closed bool
	wanted atomic.Bool // somebody waits for room
}

func newGate(l net.Listener, max int, log *slog.Logger) *gate {
	g := &gate{Listener: l, max: max, log: log, open: map[*conn]struct{}{}}
	g.room.L = &g.mu
	return g
}

// A conn is one connection through the gate.
type conn struct {
	net.Conn
	gate *gate
	// idleSince is when the connection fell silent after an answer, in Unix
	// nanoseconds; 0 while a request is under way or the first is awaited.
	idleSince atomic.Int64
	// unread says that the client may still be sending what nobody will read.
	unread atomic.Bool
	once   sync.Once
}

// Accept returns the next connection once there is room for it.
func (g *gate) Accept() (net.Conn, error) {
	inner, err := g.accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, gate: g}
	if !g.admit(c) {
		inner.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// accept waits out a shortage of files or memory, which is no reason to stop serving.
func (g *gate) accept() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		inner, err := g.Listener.Accept()
		if err == nil || !passing(err) {
			return inner, err
		}
		g.log.Warn("no connection can be accepted", "err", err, "again_in", pause)
		time.Sleep(pause)
	}
}

func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// admit waits for room and reports whether the gate was still open then.
func (g *gate) admit(c *conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed && len(g.open) >= g.max {
		if idle := g.longestIdle(); idle != nil {
			delete(g.open, idle)
			go idle.Close() // it may take a moment, and takes the lock
			continue
		}
		g.wanted.Store(true)
		g.room.Wait()
	}
	g.wanted.Store(false)
	if !g.closed {
		g.open[c] = struct{}{}
	}
	return !g.closed
}

func (g *gate) longestIdle() (oldest *conn) {
	var since int64
	for c := range g.open {
		if at := c.idleSince.Load(); at != 0 && (oldest == nil || at < since) {
			oldest, since = c, at
		}
	}
	return oldest
}

// idle notes that a connection waits for its next request, busy that it has one.
func (g *gate) idle(c *conn) {
	c.idleSince.Store(time.Now().UnixNano())
	if g.wanted.Load() {
		g.signal()
	}
}

func (c *conn) busy() { c.idleSince.Store(0) }

func (g *gate) signal() {
	g.mu.Lock()
	g.room.Broadcast()
	g.mu.Unlock()
}

// Close ends the listening and leaves the connections.
func (g *gate) Close() error {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	g.room.Broadcast()
	g.mu.Unlock()
	if already {
		return nil
	}
	return g.Listener.Close()
}

// count is the number of open connections.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

// cut closes every connection, whatever it is doing.
func (g *gate) cut() {
	g.mu.Lock()
	var all []*conn
	for c := range g.open {
		all = append(all, c)
	}
	g.mu.Unlock()
	for _, c := range all {
		c.Conn.Close()
	}
}

// Close closes the connection and makes room for another.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		if c.unread.Load() {
			c.leaveSlowly()
		}
		err = c.Conn.Close()
		c.gate.mu.Lock()
		delete(c.gate.open, c)
		c.gate.room.Broadcast()
		c.gate.mu.Unlock()
	})
	return err
}

// SetWriteDeadline never fails. The library under Fiber ends the whole process when it
// does, and it does when the connection was just closed to make room or at the end of
// Shutdown's patience. The write that follows fails by itself.
func (c *conn) SetWriteDeadline(t time.Time) error {
	_ = c.Conn.SetWriteDeadline(t)
	return nil
}

// SetDeadline never fails, for the same reason.
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.Conn.SetDeadline(t)
	return nil
}

// leaveSlowly reads away some of what a refused client is still sending. Closing a
// connection with unread bytes resets it, and the client would lose the answer that
// told it why.
func (c *conn) leaveSlowly() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if c.SetReadDeadline(time.Now().Add(500*time.Millisecond)) == nil {
		io.CopyN(io.Discard, c.Conn, 256<<10)
	}
}
