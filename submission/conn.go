package submission

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"regexp"
	"sync"
	"time"
)

// conn is the connection of a client under the library, below TLS. It has the deadlines, since the library
// sets one for each command only and reads on after one has passed: as commands, in the midst of a text.
type conn struct {
	net.Conn
	server *Server
	from   netip.Addr
	key    string // whose share it is in; guarded by the server's lock
	close  sync.Once

	mu      sync.Mutex
	command time.Time // when the command must have come, as the library says
	until   time.Time // when the client must have signed in, or the text come; zero: any time
	chunks  bool      // BDAT: the library shows the error of a read to the client
	over    bool      // nothing is read any more
	stopped bool      // by a shutdown

	dots         dots
	reply        reading
	acknowledged func() // what to do when a command has come after a reply; nil: nothing
}

// dots finds a dot and a CR alone at the start of a line. The library drops both from a text.
type dots struct {
	tail  []byte
	found bool // used by the library's goroutine, or while it waits
}

var dotCR = regexp.MustCompile(`\n\.\r[^\n]`)

// Write is given all that the library reads, in the clear.
func (d *dots) Write(b []byte) (int, error) {
	all := append(d.tail, b...)
	d.found = d.found || dotCR.Match(all)
	d.tail = append(d.tail[:0], all[max(0, len(all)-len("\n.\r")):]...)
	return len(b), nil
}

// reading is how far a client is known to have come with a reply.
type reading int8

const (
	unsaid  reading = iota // the reply is to be written
	written                // and nothing has been read since
	heard                  // more has been read: the answer to it proves that it was a command
)

func newConn(socket net.Conn, s *Server) *conn {
	c := &conn{Conn: socket, server: s, until: time.Now().Add(s.times.SignIn)}
	if at, ok := socket.RemoteAddr().(*net.TCPAddr); ok {
		c.from = at.AddrPort().Addr().Unmap()
	}
	return c
}

// slow is the error of a client that took too long. Its text names no address.
type slow struct{}

func (slow) Error() string   { return "timeout" }
func (slow) Timeout() bool   { return true }
func (slow) Temporary() bool { return true }

// Read reads until the first deadline. After an error it reads nothing any more.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.arm(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if c.reply == written {
			c.reply = heard
		}
		return n, nil
	}
	c.acknowledged = nil
	c.over = true
	switch {
	case c.chunks:
		return n, tooSlow
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return n, net.ErrClosed // not io.EOF, which the library takes for the end of a chunk
	}
	return n, slow{}
}

func (c *conn) arm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return net.ErrClosed
	case c.stopped:
		c.over = true
		return slow{}
	}
	deadline := c.command
	if deadline.IsZero() || !c.until.IsZero() && c.until.Before(deadline) {
		deadline = c.until
	}
	return c.Conn.SetReadDeadline(deadline)
}

// Write writes; after an error nothing is read any more, as its answer could not be written.
func (c *conn) Write(b []byte) (int, error) {
	if done := c.answering(); done != nil {
		done()
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		c.stop(true)
	}
	return n, err
}

// answering returns what to do before the next octets are written: a command that arrived after a reply
// proves that the reply did. What was sent before the reply, as by PIPELINING, proves nothing.
func (c *conn) answering() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.reply {
	case unsaid:
		if c.reply = written; pending(c.Conn) {
			c.acknowledged = nil
		}
	case heard:
		done, c.acknowledged = c.acknowledged, nil
	}
	return done
}

// replied says what to do when the client is known to have read the reply that is written next.
func (c *conn) replied(acknowledged func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reply, c.acknowledged = unsaid, acknowledged
}

// SetReadDeadline keeps the library's deadline for the next command.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.command = t
	return nil
}

// limit sets when what comes must have come. Zero is any time.
func (c *conn) limit(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
}

// inChunks says whether a text comes by BDAT.
func (c *conn) inChunks(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chunks = now
}

// stop ends reading: at once and in silence, or with an answer of 421.
func (c *conn) stop(silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.stopped = c.over || silent, true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // an error means that it is closed
}

// cut closes the connection for another.
func (c *conn) cut() {
	c.stop(true)
	_ = c.Conn.Close()
}

// Close closes the connection and gives its place to another.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.close.Do(func() { c.server.leave(c) })
	return err
}
