package api

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

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
	holds      atomic.Pointer[share] // of a request whose answer is not written yet
	until      time.Time             // when the library wants to stop reading; its own goroutine's
	leaving    time.Time             // when it wants to stop writing
	hasty      bool                  // its request was one too many without a key; its own goroutine's
	given      chan struct{}         // closed when the connection is given up
	stalled    bool                  // its last read was not done in time; its own goroutine's, too
	// unread says that the client may still be sending what nobody will read.
	unread atomic.Bool
	once   sync.Once
}

const givenUp = -1

func newConn(inner net.Conn, d *door) *conn {
	return &conn{Conn: inner, door: d, given: make(chan struct{})}
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
	if at <= 0 || !c.waiting.CompareAndSwap(at, givenUp) {
		return false
	}
	close(c.given)
	return true
}

// answered says that a request's answer is through. What comes after one that was refused for want
// of a key is read a moment later, unless the connection has shown a key before: clients that ask
// again as fast as they are refused would take all processors.
func (c *conn) answered() {
	c.release()
	c.next()
	if c.hasty && c.owner.Load() == nil {
		timer := time.NewTimer(breather)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.given:
		}
	}
	c.hasty = false
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

// release gives back what a request holds of a share.
func (c *conn) release() {
	if held := c.holds.Swap(nil); held != nil {
		held.leave()
	}
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
	c.stalled = errors.Is(err, os.ErrDeadlineExceeded)
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
	c.owes.Store(false)
	n, err := c.deliver(b)
	if c.late.Swap(false) {
		_ = c.Conn.SetReadDeadline(c.until)
		c.await() // some of the next request may have been heard
	}
	return n, err
}

// taken is how long an answer may take to be taken by who has shown no key.
const taken = 50 * time.Millisecond

// deliver writes. Who has shown no key and does not take the answer at once may have to make
// room before it is through.
func (c *conn) deliver(b []byte) (int, error) {
	if c.owner.Load() != nil || c.waiting.Load() != 0 {
		return c.Conn.Write(b)
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(taken))
	n, err := c.Conn.Write(b)
	_ = c.Conn.SetWriteDeadline(c.leaving)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	c.release() // what waits for the client takes no processor
	c.await()
	more, err := c.Conn.Write(b[n:])
	return n + more, err
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

// Close closes the connection and makes room for another.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		c.release()
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
	c.leaving = t
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
