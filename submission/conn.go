package submission

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// conn is the connection of a client. Its goroutine alone reads, writes and sets the deadlines; stop may come from any.
type conn struct {
	net.Conn          // the socket, or TLS over it
	socket   net.Conn // has the deadlines
	times    *times
	from     netip.Addr
	in       *bufio.Reader
	out      []byte    // replies that are not sent yet
	until    time.Time // when the client must have signed in, or the text come; zero: any time
	key      string    // that it is signed in with, in whose share it is
	signedIn bool      // both are changed under the server's lock

	mu    sync.Mutex
	ended *reply // the last reply, once nothing is to be read any more
}

// await sets when what is read next must have come, or returns why nothing is read any more.
func (c *conn) await(due time.Time) (ended *reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		_ = c.socket.SetDeadline(due) // also of what TLS writes meanwhile; an error means that it is closed, as the next read says
	}
	return c.ended
}

// stop ends the connection with a reply when its goroutine reads the next time, or does now.
func (c *conn) stop(last *reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = last
		_ = c.socket.SetReadDeadline(time.Unix(1, 0))
	}
}

// last returns the reply that ends the connection after an error of reading.
func (c *conn) last(err error) *reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return c.ended
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow
	}
	return gone
}

// line reads a line, and returns it without its end, or the reply that ends the connection.
func (c *conn) line() (string, *reply) {
	due := time.Now().Add(c.times.Idle)
	if !c.until.IsZero() && c.until.Before(due) {
		due = c.until
	}
	if ended := c.await(due); ended != nil {
		return "", ended // though more may have come
	}
	for line := ""; ; {
		piece, err := c.in.ReadSlice('\n')
		line += string(piece)
		switch {
		case len(line) > maxLine:
			return "", lineTooLong
		case err == nil:
			return strings.TrimSuffix(line[:len(line)-1], "\r"), nil
		case err != bufio.ErrBufferFull:
			return "", c.last(err)
		}
	}
}

// say answers. What ends the connection is sent at once, the rest before the client is read again, so that the replies
// to commands that came together are sent together.
func (c *conn) say(r *reply) {
	c.out = fmt.Appendf(c.out, "%d %s\r\n", r.code, strings.TrimSpace(r.enhanced+" "+r.text))
	if r.ends() {
		c.flush()
	}
}

func (c *conn) flush() {
	if len(c.out) == 0 {
		return
	}
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.times.Write)) // an error means that it is closed, as Write says
	if _, err := c.Write(c.out); err != nil {
		_ = c.socket.Close() // so that no further reply waits as long
	}
	c.out = c.out[:0]
}

// Read sends the replies and reads what comes next.
func (c *conn) Read(p []byte) (int, error) {
	c.flush()
	return c.Conn.Read(p)
}
