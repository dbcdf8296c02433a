package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

// conn is one conversation with a relay, past its greeting. It belongs to one send at a
// time.
//
// No library has it, because of what it promises: net/smtp and go-smtp buffer the text of
// a mail, so an error from them does not tell whether the last octet has left.
type conn struct {
	relay  *relay
	socket net.Conn // TCP: deadlines are set here
	stream net.Conn // the socket, or TLS on it
	in     replyReader
	offers extensions

	state   state
	kept    bool        // it was used before
	grouped bool        // the last RCPT was sent before MAIL was answered
	mails   int         // whose text was taken
	most    int         // mails that it may carry; 0 is any number
	asked   time.Time   // since when an answer is waited for
	idle    *time.Timer // closes it while it is kept
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
	errInjection  = errors.New("clear text after the answer to STARTTLS, which may be an attack")
)

// dial connects, secures, greets and logs in. Whatever goes wrong is trouble of the relay
// and not of the mail: the outcome is always Unavailable.
func (r *relay) dial(b budget) (*conn, *Error) {
	c := &conn{relay: r, asked: time.Now()}
	dialer := net.Dialer{Timeout: r.options.limits.connect}
	socket, err := dialer.DialContext(b.ctx, "tcp", r.name)
	if err != nil {
		return nil, c.lost(b, StepConnect, err)
	}
	c.use(socket, socket)
	stop := b.interrupt(socket)
	failure := c.introduce(b)
	if !stop() && failure == nil {
		failure = c.lost(b, StepConnect, b.ctx.Err())
	}
	if failure != nil {
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

// introduce goes from the open socket to where MAIL may be said.
func (c *conn) introduce(b budget) *Error {
	if c.relay.url.mode == implicitTLS {
		if failure := c.secure(b); failure != nil {
			return failure
		}
	}
	if failure := c.expect(b, StepBanner, 2); failure != nil {
		return failure
	}
	c.most = mostMails(string(c.in.text))
	if failure := c.hello(b); failure != nil {
		return failure
	}
	if c.relay.url.mode == startTLS {
		if failure := c.upgrade(b); failure != nil {
			return failure
		}
	}
	if c.relay.url.login != nil {
		if failure := c.login(b); failure != nil {
			return failure
		}
	}
	if c.in.ahead() {
		return c.lost(b, StepEHLO, errTooEarly)
	}
	return nil
}

func (c *conn) secure(b budget) *Error {
	if err := c.arm(b, c.relay.options.limits.connect); err != nil {
		return c.lost(b, StepTLS, err)
	}
	encrypted := tls.Client(c.socket, c.relay.tls)
	if err := encrypted.Handshake(); err != nil {
		return c.lost(b, StepTLS, err)
	}
	c.use(c.socket, encrypted)
	return nil
}

func (c *conn) hello(b budget) *Error {
	failure := c.expect(b, StepEHLO, 2, "EHLO "+c.relay.options.HELO)
	if failure == nil {
		c.offers = readExtensions(string(c.in.text))
	}
	return failure
}

// upgrade turns clear text into TLS, or fails.
func (c *conn) upgrade(b budget) *Error {
	if !c.offers.startTLS {
		return c.lost(b, StepSTARTTLS, errNoSTARTTLS)
	}
	if failure := c.expect(b, StepSTARTTLS, 220, "STARTTLS"); failure != nil {
		return failure
	}
	// What came along with the 220 came in the clear. Read later, it would pass for the
	// relay's answer under TLS (CVE-2011-0411 and its kin).
	if c.in.ahead() {
		return c.lost(b, StepSTARTTLS, errInjection)
	}
	if failure := c.secure(b); failure != nil {
		return failure
	}
	return c.hello(b)
}

// expect sends a line, if there is one, and fails unless the reply has this code, or this
// first digit.
func (c *conn) expect(b budget, step Step, want int, line ...string) *Error {
	code, err := c.ask(b, line...)
	switch {
	case err != nil:
		return c.lost(b, step, err)
	case code == want, code/100 == want:
		return nil
	}
	return c.refused(step, code)
}

// ask sends a line, if there is one, and reads the reply.
func (c *conn) ask(b budget, line ...string) (int, error) {
	if err := c.arm(b, c.relay.options.limits.command); err != nil {
		return 0, err
	}
	for _, text := range line {
		if _, err := c.stream.Write([]byte(text + "\r\n")); err != nil {
			return 0, err
		}
	}
	return c.in.next()
}

// arm starts a wait for the relay.
func (c *conn) arm(b budget, most time.Duration) error {
	c.asked = time.Now()
	return b.arm(c.socket, most)
}

// lost is the failure of a connection that broke before the mail was handed over.
func (c *conn) lost(b budget, step Step, err error) *Error {
	c.state = broken
	outcome := Unavailable
	if step == StepRCPT || c.grouped && (step == StepMAIL || step == StepRSET) { // the relay may be waiting on the recipient
		outcome = Deferred
	}
	return &Error{Outcome: outcome, Relay: c.relay.name, Step: step, Err: b.cause(c.asked, err)}
}

// refused is the relay's refusal.
func (c *conn) refused(step Step, code int) *Error {
	reply := newReply(code, c.in.text)
	return &Error{Outcome: reply.outcome(step), Relay: c.relay.name, Step: step, Reply: reply}
}

func (c *conn) close() { _ = c.socket.Close() }

// quit says QUIT and closes. The relay should be the first to close, so that it, too, counts
// one connection less before the next. No mail depends on it, so a second is enough.
func (c *conn) quit(life context.Context) {
	b := budget{ctx: life, until: time.Now().Add(time.Second)}
	defer b.interrupt(c.socket)()
	for _, err := c.ask(b, "QUIT"); err == nil; {
		_, err = c.in.next()
	}
	if encrypted, ok := c.stream.(*tls.Conn); ok {
		_ = encrypted.Close()
	}
	c.close()
}

// extensions is what EHLO offered, as far as it matters here.
type extensions struct {
	pipelining, startTLS bool
	size                 int      // the most octets of a mail; 0 if it does not say
	auth                 []string // the ways to log in
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
