package mailer

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// smtpConn is one conversation with a relay, past its greeting. It belongs to
// one send at a time.
//
// It is written for this module instead of taken from a library because of
// what it promises: commands in one group where the relay allows it, one
// deadline for a whole reply, and to know for certain whether the last octet
// of a mail can have left.
type smtpConn struct {
	opener *opener
	relay  string
	socket net.Conn // TCP: deadlines are set here
	stream net.Conn // what is spoken over: the socket, or TLS on it
	in     replyReader
	out    []byte
	offers extensions

	mails     int       // tried so far
	asked     time.Time // since when the relay's present answer is waited for
	idleSince int64     // when it was put aside, in the relay's clock
	ranAhead  bool      // the last mail's RCPT went out before MAIL was answered
	hurried   bool      // found no place in slow for the group that is out
	recipient answering // how the last mail's recipient was answered for
	broken    bool      // not to be used again
}

// interruptible makes ctx end whatever the socket waits for. The returned
// function stops that, and says false when it came too late: the socket's
// deadline may then be spoilt at any moment and the connection must go.
func interruptible(ctx context.Context, socket net.Conn) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() {
		// An error means that the socket is closed, which will do as well.
		_ = socket.SetDeadline(time.Unix(1, 0))
	})
}

// arm is patience.arm, at the start of each wait for the relay.
func (c *smtpConn) arm(p patience, most time.Duration) error {
	c.asked = time.Now()
	return p.arm(c.socket, most)
}

// ask sends one command line and returns the code of its reply.
func (c *smtpConn) ask(p patience, line string) (int, error) {
	if err := c.arm(p, c.opener.options.CommandTimeout); err != nil {
		return 0, err
	}
	c.out = append(append(c.out[:0], line...), "\r\n"...)
	if _, err := c.stream.Write(c.out); err != nil {
		return 0, err
	}
	return c.in.next()
}

// lost is the failure of a connection that broke before the mail was handed
// over. The connection is of no use any more.
func (c *smtpConn) lost(p patience, step Step, err error) *SendError {
	c.broken = true
	return &SendError{Outcome: Unavailable, Relay: c.relay, Step: step, Err: p.cause(c.asked, err)}
}

// refused is the relay's refusal to talk to us at all: even a 5xx is not about
// the mail, so the mail is merely not deliverable here and now.
func (c *smtpConn) refused(step Step, code int) *SendError {
	c.broken = true
	return &SendError{Outcome: Unavailable, Relay: c.relay, Step: step, Reply: newReply(code, c.in.text)}
}

// close ends the connection without ceremony.
func (c *smtpConn) close() {
	// Nobody waits for what could still be in it.
	_ = c.socket.Close()
}

// quit takes leave as RFC 5321 asks, within a bound.
func (c *smtpConn) quit(p patience) {
	if !c.broken {
		// The answer changes nothing, but the relay should be the first to
		// close: then it, too, counts one connection less before the next.
		for _, err := c.ask(p, "QUIT"); err == nil; {
			_, err = c.in.next()
		}
		if encrypted, ok := c.stream.(*tls.Conn); ok {
			_ = encrypted.Close()
		}
	}
	c.close()
}
