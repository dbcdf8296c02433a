package api

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A door is a listener that never has more than so many connections open. When all
// places are taken, one that waits for a request makes room for the next: of those that
// never sent a whole one the longest waiting, if there is none of those that never
// showed a valid key, and only then of those whose key has the most connections. A
// request of which a part has come is still waited for. If every connection is being
// answered, the next waits.
//
// So no number of connections without a key uses up the process's files or cuts off a
// caller that keeps its connection. A flood can still cut off a caller that is just
// opening one, if as many as there are places come in before its first request has.
// Nothing is counted by remote address: behind a proxy all callers have the same.
type door struct {
	net.Listener // nil until it is taken in
	max          int
	log          *slog.Logger

	mu     sync.Mutex
	room   sync.Cond // a connection closed or can make room, or the door closed
	open   map[*conn]struct{}
	closed bool
	gaveUp int         // connections closed to make room, so far
	wanted atomic.Bool // somebody waits for room
}

func newDoor(max int, log *slog.Logger) *door {
	g := &door{max: max, log: log, open: map[*conn]struct{}{}}
	g.room.L = &g.mu
	return g
}

// takeIn has the door be that of a listener, the only one.
func (g *door) takeIn(l net.Listener) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Listener != nil {
		return errors.New("api: the server has already served")
	}
	g.Listener = l
	if g.closed {
		return l.Close()
	}
	return nil
}

// Accept returns the next connection once there is room for it.
func (g *door) Accept() (net.Conn, error) {
	inner, err := g.accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, door: g}
	c.waiting.Store(time.Now().UnixNano())
	if !g.admit(c) {
		inner.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// accept waits out a shortage of files or memory, which is no reason to stop serving.
func (g *door) accept() (net.Conn, error) {
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

// admit waits for room and reports whether the door was still open then.
func (g *door) admit(c *conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed && len(g.open) >= g.max {
		g.wanted.Store(true) // before looking: who waits from now on will signal
		if c := g.expendable(); c == nil {
			g.room.Wait()
		} else if c.giveUp() {
			g.vacate(c)
		}
	}
	g.wanted.Store(false)
	if !g.closed {
		g.open[c] = struct{}{}
	}
	return !g.closed
}

// vacate closes a connection that was given up, with the lock left meanwhile. Its place is
// not free before its file is: else the files of a flood that is accepted faster than it is
// closed would be bounded by nothing. TCP closes without waiting for the other side.
func (g *door) vacate(c *conn) {
	g.mu.Unlock()
	c.Conn.Close()
	g.mu.Lock()
	delete(g.open, c)
	g.gaveUp++
}

// expendable is the connection that makes room next, if one can.
func (g *door) expendable() (found *conn) {
	var rank, since int64
	for c := range g.open {
		at := c.waiting.Load()
		if at <= 0 {
			continue
		}
		if r := c.rank(); found == nil || r < rank || r == rank && at < since {
			found, rank, since = c, r, at
		}
	}
	return found
}

func (g *door) signal() {
	g.mu.Lock()
	g.room.Broadcast()
	g.mu.Unlock()
}

// Close ends the listening and leaves the connections.
func (g *door) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.room.Broadcast()
	if g.Listener == nil {
		return nil
	}
	return g.Listener.Close()
}

// count is the number of open connections.
func (g *door) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

// countGivenUp is the number of connections that were closed to make room.
func (g *door) countGivenUp() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gaveUp
}

// dismiss closes the connections on which no request has begun. One that has begun must
// be there whole by the deadline, if there is one, or is not waited for.
func (g *door) dismiss(deadline time.Time) {
	for _, c := range g.all() {
		switch {
		case c.waiting.Load() <= 0:
		case c.heard.Load():
			if !deadline.IsZero() {
				c.Conn.SetReadDeadline(deadline)
			}
		case c.giveUp():
			c.Conn.Close()
		}
	}
}

// cut closes every connection, whatever it is doing.
func (g *door) cut() {
	for _, c := range g.all() {
		c.Conn.Close()
	}
}

func (g *door) all() (all []*conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		all = append(all, c)
	}
	return all
}
