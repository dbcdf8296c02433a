package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/trace"
)

// conn is one conversation with a relay, past its greeting. It belongs to one send at a
// time.
//
// No library can keep its promise: net/smtp and go-smtp buffer the text of an email, so their errors do
// not tell whether the last octet has left.
type conn struct {
	relay  *relay
	socket net.Conn // TCP: deadlines are set here
	stream net.Conn // the socket, or TLS on it
	in     replyReader
	out    []byte // what is written; its memory is used again
	offers extensions

	budget budget      // of the send that it belongs to
	stop   func() bool // see enter

	state state
	kept  bool        // it was used before
	mails int         // whose text was taken
	most  int         // emails that it may carry; 0 is any number
	asked time.Time   // since when an answer is waited for
	idle  *time.Timer // closes it while it is kept
}

// state says what a connection can be used for.
type state int

const (
	ready  state = iota // for MAIL
	begun               // for MAIL, after RSET
	broken              // for nothing
)

var (
	errNoSTARTTLS = errors.New("the relay does not offer STARTTLS; with ?tls=none in its URL, mailgate sends unencrypted")
	errInjection  = errors.New("the relay sent clear text after its STARTTLS reply, which may be an attack")
)

// dial connects, secures, greets and logs in. Any failure is the relay's and not the email's: the
// outcome is always Unavailable.
func (r *relay) dial(b budget) (*conn, *Error) {
	c := &conn{relay: r, budget: b, asked: time.Now()}
	dialer := net.Dialer{Timeout: r.options.limits.Connect, Deadline: b.begin}
	socket, err := dialer.DialContext(b.ctx, "tcp", r.name)
	if err != nil {
		return nil, c.lost(StepConnect, err)
	}
	c.use(socket, socket)
	c.enter(b)
	trace.Event(b.ctx, string(StepConnect), 0)
	if failure := c.introduce(); failure != nil {
		c.close()
		return nil, failure
	}
	return c, nil
}

// use speaks over this stream from now on and forgets what was heard before.
func (c *conn) use(socket, stream net.Conn) {
	c.socket, c.stream, c.offers = socket, stream, extensions{}
	c.in.Reader = bufio.NewReaderSize(stream, mostLineBytes)
}

// enter makes the connection belong to a send, whose end ends whatever the socket waits for.
func (c *conn) enter(b budget) {
	c.budget = b
	socket := c.socket                                                                    // secure writes the field
	c.stop = context.AfterFunc(b.ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) }) // an error means that it is closed
}

// leave ends that. Where the send has ended, the deadline may be overwritten at any moment.
func (c *conn) leave() {
	if !c.stop() {
		c.state = broken
	}
}

// introduce goes from the open socket to where MAIL may be said.
func (c *conn) introduce() *Error {
	if c.relay.url.mode == implicitTLS {
		if failure := c.secure(); failure != nil {
			return failure
		}
	}
	if failure := c.expect(StepBanner, 2); failure != nil {
		return failure
	}
	if bytes.Contains(c.in.text, []byte(" Exim ")) {
		c.most = eximMails
	}
	if failure := c.hello(); failure != nil {
		return failure
	}
	if c.relay.url.mode == startTLS {
		if failure := c.upgrade(); failure != nil {
			return failure
		}
	}
	if c.relay.url.login != nil {
		if failure := c.login(); failure != nil {
			return failure
		}
	}
	if c.in.ahead() {
		return c.lost(StepEHLO, errTooEarly)
	}
	return nil
}

func (c *conn) secure() *Error {
	if err := c.arm(c.relay.options.limits.Connect, c.budget.begin); err != nil {
		return c.lost(StepTLS, err)
	}
	encrypted := tls.Client(c.socket, c.relay.tls)
	if err := encrypted.Handshake(); err != nil {
		return c.lost(StepTLS, err)
	}
	c.use(c.socket, encrypted)
	trace.Event(c.budget.ctx, string(StepTLS), 0)
	return nil
}

func (c *conn) hello() *Error {
	failure := c.expect(StepEHLO, 2, "EHLO "+c.relay.options.HELO)
	if failure == nil {
		c.offers = readExtensions(string(c.in.text))
	}
	return failure
}

// upgrade turns clear text into TLS, or fails.
func (c *conn) upgrade() *Error {
	if !c.offers.startTLS {
		return c.lost(StepSTARTTLS, errNoSTARTTLS)
	}
	if failure := c.expect(StepSTARTTLS, 220, "STARTTLS"); failure != nil {
		return failure
	}
	// What came along with the 220 came in the clear. Read later, it would pass for the
	// relay's answer under TLS (CVE-2011-0411 and its kin).
	if c.in.ahead() {
		return c.lost(StepSTARTTLS, errInjection)
	}
	if failure := c.secure(); failure != nil {
		return failure
	}
	return c.hello()
}

// expect sends a line, if there is one, and fails unless the reply has this code, or this
// first digit.
func (c *conn) expect(step Step, want int, line ...string) *Error {
	code, err := c.ask(line...)
	trace.Event(c.budget.ctx, string(step), code)
	switch {
	case err != nil:
		return c.lost(step, err)
	case code == want, code/100 == want:
		return nil
	}
	return c.refused(step, code)
}

// ask sends a line, if there is one, and reads the reply.
func (c *conn) ask(line ...string) (int, error) {
	if err := c.arm(c.relay.options.limits.Command, c.budget.begin); err != nil {
		return 0, err
	}
	if err := c.say(line...); err != nil {
		return 0, err
	}
	return c.in.next()
}

// say sends lines in one piece.
func (c *conn) say(lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	c.out = c.out[:0]
	for _, line := range lines {
		c.out = append(append(c.out, line...), "\r\n"...)
	}
	_, err := c.stream.Write(c.out)
	return err
}

// arm starts a wait for the relay, of this much time and until then at most. An error means that the
// send has ended.
func (c *conn) arm(most time.Duration, until time.Time) error {
	c.asked = time.Now()
	deadline := c.asked.Add(most)
	if until.Before(deadline) {
		deadline = until
	}
	if err := c.socket.SetDeadline(deadline); err != nil {
		return err
	}
	return c.budget.ctx.Err() // asked after the deadline is set, which may have undone what enter did
}

// lost returns the failure of a connection that broke before the email was handed over. With
// PIPELINING the relay may hold the answer to MAIL back until it has that to RCPT, which may wait
// for the recipient's own server.
func (c *conn) lost(step Step, err error) *Error {
	c.state = broken
	outcome := Unavailable
	if step == StepRCPT || c.offers.pipelining && (step == StepMAIL || step == StepRSET) {
		outcome = Deferred
	}
	return &Error{Outcome: outcome, Relay: c.relay.name, Step: step, Err: c.budget.cause(c.asked, err)}
}

// refused returns the relay's refusal.
func (c *conn) refused(step Step, code int) *Error {
	reply := newReply(code, c.in.text)
	return &Error{Outcome: reply.outcome(step), Relay: c.relay.name, Step: step, Reply: reply}
}

func (c *conn) close() {
	c.stop()
	_ = c.socket.Close()
}

// quit says QUIT and closes; a broken connection is only closed. No email depends on it, so the
// answer is not waited for.
func (c *conn) quit() {
	if c.state == broken {
		c.close()
		return
	}
	if c.socket.SetDeadline(time.Now().Add(time.Second)) == nil {
		_ = c.say("QUIT")
	}
	_ = c.stream.Close()
}

// part closes a connection after a failure. A relay that answered may still listen, and is told.
func (c *conn) part(failure *Error) {
	if failure.Reply != nil {
		_ = c.say("QUIT")
	}
	c.close()
}

// extensions is what EHLO offered, as far as it matters here.
type extensions struct {
	pipelining, startTLS, eightBit bool
	size                           int      // the most octets of an email; 0 if it does not say
	auth                           []string // the ways to log in
}

func readExtensions(text string) extensions {
	var e extensions
	for _, line := range strings.Split(strings.ToUpper(text), "\n")[1:] {
		// "AUTH=PLAIN" is how some servers still say it.
		words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '=' })
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "PIPELINING":
			e.pipelining = true
		case "STARTTLS":
			e.startTLS = true
		case "8BITMIME":
			e.eightBit = true
		case "SIZE":
			if len(words) > 1 {
				e.size, _ = strconv.Atoi(words[1])
			}
		case "AUTH":
			e.auth = append(e.auth, words[1:]...)
		}
	}
	return e
}
