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
	d := &door{max: max, log: log, open: map[*conn]struct{}{}}
	d.room.L = &d.mu
	return d
}

// takeIn has the door be that of a listener, the only one.
func (d *door) takeIn(l net.Listener) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Listener != nil {
		return errors.New("api: the server has already served")
	}
	d.Listener = l
	if d.closed {
		return l.Close()
	}
	return nil
}

// Accept returns the next connection once there is room for it.
func (d *door) Accept() (net.Conn, error) {
	inner, err := d.accept()
	if err != nil {
		return nil, err
	}
	c := newConn(inner, d)
	c.waiting.Store(time.Now().UnixNano())
	if !d.admit(c) {
		inner.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// accept waits out a shortage of files or memory, which is no reason to stop serving.
func (d *door) accept() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		inner, err := d.Listener.Accept()
		if err == nil || !passing(err) {
			return inner, err
		}
		d.log.Warn("no connection can be accepted", "err", err, "again_in", pause)
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
func (d *door) admit(c *conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed && len(d.open) >= d.max {
		d.wanted.Store(true) // before looking: who waits from now on will signal
		if c := d.expendable(); c == nil {
			d.room.Wait()
		} else if c.giveUp() {
			d.vacate(c)
		}
	}
	d.wanted.Store(false)
	if !d.closed {
		d.open[c] = struct{}{}
	}
	return !d.closed
}

// vacate closes a connection that was given up, with the lock left meanwhile. Its place is
// not free before its file is: else the files of a flood that is accepted faster than it is
// closed would be bounded by nothing. TCP closes without waiting for the other side.
func (d *door) vacate(c *conn) {
	d.mu.Unlock()
	c.Conn.Close()
	d.mu.Lock()
	delete(d.open, c)
	d.gaveUp++
}

// expendable is the connection that makes room next, if one can.
func (d *door) expendable() (found *conn) {
	var rank, since int64
	for c := range d.open {
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

func (d *door) signal() {
	d.mu.Lock()
	d.room.Broadcast()
	d.mu.Unlock()
}

// Close ends the listening and leaves the connections.
func (d *door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.room.Broadcast()
	if d.Listener == nil {
		return nil
	}
	return d.Listener.Close()
}

// count is the number of open connections.
func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// countGivenUp is the number of connections that were closed to make room.
func (d *door) countGivenUp() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gaveUp
}

// dismiss closes the connections on which no request has begun. One that has begun must
// be there whole by the deadline, if there is one, or is not waited for.
func (d *door) dismiss(deadline time.Time) {
	for _, c := range d.all() {
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
func (d *door) cut() {
	for _, c := range d.all() {
		c.Conn.Close()
	}
}

func (d *door) all() (all []*conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		all = append(all, c)
	}
	return all
}
