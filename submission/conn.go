package submission

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// conn is the connection of a client under the library, below TLS. It has the deadlines, since the library
// sets one for each command only and reads on after one has passed: as commands, in the midst of a text.
type conn struct {
	net.Conn
	from     netip.Addr
	dots     dots
	chunks   atomic.Bool // a text comes by BDAT: the library shows the error of a read to the client
	key      string      // whose share it is in, for other connections; its session has its own
	signedIn bool        // both are guarded by the server's lock

	mu      sync.Mutex
	command time.Time // when the command must have come, as the library says
	until   time.Time // when the client must have signed in, or the text come; zero: any time
	input   input

	reply        progress
	acknowledged func() // what to do when a command has come after a reply; nil: nothing
}

// input is what a connection still reads.
type input int8

const (
	reads    input = iota
	timedOut       // the next read is too slow, and the library answers 421
	closed         // each read fails, and the library answers nothing
)

// progress is how far the reply to an email has come.
type progress int8

const (
	unwritten progress = iota
	written            // and nothing has been read since
	followed           // more has been read: the answer to it proves that it was a command
)

// Read reads until the first deadline. Its errors name no address.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.input != closed {
		if c.reply == written {
			c.reply = followed
		}
		return n, nil
	}
	before := c.input
	c.input, c.acknowledged = closed, nil
	c.arm()
	switch {
	case before == closed:
	case c.chunks.Load():
		return n, tooSlow
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, os.ErrDeadlineExceeded
	}
	return n, net.ErrClosed // not io.EOF, which the library takes for the end of a chunk
}

// Write writes; after an error nothing is read any more, as its answer could not be written.
func (c *conn) Write(b []byte) (int, error) {
	if done := c.answering(); done != nil {
		done()
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		c.stop(closed)
	}
	return n, err
}

// answering returns what to do before the next octets are written: a command that arrived after a reply
// proves that the reply did. What was sent before the reply, as by PIPELINING, proves nothing.
func (c *conn) answering() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.reply {
	case unwritten:
		if c.reply = written; pending(c.Conn) {
			c.acknowledged = nil
		}
	case followed:
		done, c.acknowledged = c.acknowledged, nil
	}
	return done
}

// replied says what to do when the client is known to have read the reply that is written next.
func (c *conn) replied(acknowledged func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reply, c.acknowledged = unwritten, acknowledged
}

// SetReadDeadline sets the library's deadline for the next command.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.command = t
	c.arm()
	return nil
}

// limit sets when what comes must have come. Zero is any time.
func (c *conn) limit(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
	c.arm()
}

// stop ends reading.
func (c *conn) stop(how input) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input = max(c.input, how)
	c.arm()
}

// arm sets the deadline. An error means that the connection is closed, as the next read says.
func (c *conn) arm() {
	deadline := c.command
	switch {
	case c.input != reads:
		deadline = time.Unix(1, 0)
	case deadline.IsZero(), !c.until.IsZero() && c.until.Before(deadline):
		deadline = c.until
	}
	_ = c.Conn.SetReadDeadline(deadline)
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
	d.tail = append(all[:0], all[max(0, len(all)-len("\n.\r")):]...)
	return len(b), nil
}
