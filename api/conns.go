package api

import (
	"errors"
	"io"
	"log/slog"
	"math"
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
	net.Listener
	max int
	log *slog.Logger

	mu     sync.Mutex
	room   sync.Cond // a connection closed or can make room, or the door closed
	open   map[*conn]struct{}
	closed bool
	gaveUp int         // connections closed to make room, so far
	wanted atomic.Bool // somebody waits for room
}

func newDoor(l net.Listener, max int, log *slog.Logger) *door {
	g := &door{Listener: l, max: max, log: log, open: map[*conn]struct{}{}}
	g.room.L = &g.mu
	return g
}

// A conn is one connection through the door.
type conn struct {
	net.Conn
	door *door
	// waiting is since when a whole request is awaited, in Unix nanoseconds; 0 while
	// one is being answered, givenUp once none will be answered any more.
	waiting atomic.Int64
	heard   atomic.Bool            // some of the awaited request has come
	asked   atomic.Bool            // a whole request has come
	owner   atomic.Pointer[caller] // whose key it showed; nil before
	refused atomic.Bool            // a request came when the connection had been given up
	// owes says that an answer is made and not sent: the library sends it later where it has
	// read some of the next request with the one before. late says that next waits for that.
	owes, late atomic.Bool
	until      time.Time // when the library wants to stop reading; its own goroutine's
	// unread says that the client may still be sending what nobody will read.
	unread atomic.Bool
	once   sync.Once
}

const givenUp = -1

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

// rank is how much would be lost with the connection: more, the fewer its caller has.
func (c *conn) rank() int64 {
	if owner := c.owner.Load(); owner != nil {
		return math.MaxInt64 - owner.connections.Load()
	}
	if c.asked.Load() {
		return 1
	}
	return 0
}

// show notes whose key has come through the connection. Where several do, behind a
// proxy, it is the last one's.
func (c *conn) show(now *caller) {
	before := c.owner.Load()
	if before == now || !c.owner.CompareAndSwap(before, now) {
		return
	}
	now.connections.Add(1)
	if before != nil {
		before.connections.Add(-1)
	}
}

// begin says that a whole request is there. If it says no, the connection was given up
// just before, and the request must not be carried out: nobody would learn of it.
func (c *conn) begin() bool {
	c.asked.Store(true)
	for {
		at := c.waiting.Load()
		if at == givenUp {
			c.refused.Store(true)
			return false
		}
		if c.waiting.CompareAndSwap(at, 0) {
			c.owes.Store(true)
			return true
		}
	}
}

// giveUp reports whether the connection waits for a request, and no longer does.
func (c *conn) giveUp() bool {
	at := c.waiting.Load()
	return at > 0 && c.waiting.CompareAndSwap(at, givenUp)
}

// answered says that an answer is on its way. Who has shown no key and does not take
// the answer may have to make room before it is through.
func (c *conn) answered() {
	if c.owner.Load() == nil {
		c.await()
	}
}

// next says that the answer is through, but for one that is not sent yet: with that the
// connection would be given up, and nobody learn of what was done.
func (c *conn) next() {
	if c.owes.Load() {
		c.late.Store(true)
		return
	}
	c.heard.Store(false)
	c.await()
}

func (c *conn) await() {
	if c.waiting.CompareAndSwap(0, time.Now().UnixNano()) && c.door.wanted.Load() {
		c.door.signal()
	}
}

// Read notes that something has come. Before anything has, every end is one in order, be
// the connection given up, timed out or reset: any other error the library would have
// answered as a request that cannot be read, and a stranger would fill the log and the
// metrics with connections on which he says nothing. After a request it tells by itself.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	if err != nil && !c.heard.Load() && !c.asked.Load() {
		err = io.EOF
	}
	return n, err
}

// Write answers nothing to a request that was not carried out, as the connection had just been
// given up: the library would say 200 to it, if the file is not closed yet.
func (c *conn) Write(b []byte) (int, error) {
	if c.refused.Load() {
		return 0, net.ErrClosed
	}
	if c.owes.Swap(false) {
		c.answered()
	}
	n, err := c.Conn.Write(b)
	if c.late.Swap(false) {
		_ = c.Conn.SetReadDeadline(c.until)
		c.await() // some of the next request may have been heard
	}
	return n, err
}

// heldBack is how long an answer waits for the rest of the next request, which is refused then
// with 408. The library sends the answer before where a part of the next one's header is
// missing, but not where a part of its body is, and until it is sent the connection makes no
// room.
//
// Of an answer that is greater than the library's buffer, 4096 bytes, the beginning is sent at
// once, and it counts as sent: its end may be held back for all of ReadTimeout, and the
// connection makes room meanwhile.
const heldBack = 500 * time.Millisecond

// SetReadDeadline leaves the next request little time while an answer is held back for it.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.until = t
	if c.owes.Load() {
		if soon := time.Now().Add(heldBack); soon.Before(t) {
			t = soon
		}
	}
	return c.Conn.SetReadDeadline(t)
}

func (g *door) signal() {
	g.mu.Lock()
	g.room.Broadcast()
	g.mu.Unlock()
}

// Close ends the listening and leaves the connections.
func (g *door) Close() error {
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

// Close closes the connection and makes room for another.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		if c.unread.Load() {
			c.leaveSlowly()
		}
		err = c.Conn.Close()
		if owner := c.owner.Swap(nil); owner != nil {
			owner.connections.Add(-1)
		}
		c.door.mu.Lock()
		delete(c.door.open, c)
		c.door.room.Broadcast()
		c.door.mu.Unlock()
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
	if c.Conn.SetReadDeadline(time.Now().Add(500*time.Millisecond)) == nil {
		io.CopyN(io.Discard, c.Conn, 256<<10)
	}
}
