package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// dialer makes connections to one relay, up to where mail may be sent.
type dialer struct {
	url     URL
	tls     *tls.Config
	tokens  *tokens // nil: the password, or no login
	options Options
	// apart says that RCPT waits for the answer to MAIL even with PIPELINING: it was once not
	// to be seen which of the two the relay was silent at.
	apart atomic.Bool
}

func newDialer(life context.Context, url URL, o Options) *dialer {
	d := &dialer{url: url, options: o, tls: &tls.Config{
		ServerName:         url.serverName,
		RootCAs:            url.roots,
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}}
	if url.grant != nil {
		d.tokens = &tokens{grant: *url.grant, life: life, timeout: o.CommandTimeout, now: o.Now}
	}
	return d
}

// conn is one conversation with a relay, past its greeting. It belongs to one send at a
// time.
//
// No library has it, because of what it promises: net/smtp and go-smtp buffer the text of
// a mail, so an error from them does not tell whether the last octet has left.
type conn struct {
	*dialer
	socket net.Conn // TCP: deadlines are set here
	stream net.Conn // the socket, or TLS on it
	in     replyReader
	offers extensions

	mails  int         // whose text was taken
	most   int         // mails that it may carry; 0 is any number
	asked  time.Time   // since when an answer is waited for
	idle   *time.Timer // closes it while it is kept
	kept   bool        // it was used before
	dirty  bool        // a transaction was begun and not ended
	broken bool        // not to be used again

	ranAhead bool // the last RCPT was sent before MAIL was answered
}

var (
	errNoSTARTTLS = errors.New("the relay does not offer STARTTLS, and no mail goes out without it")
	errInjection  = errors.New("clear text after the answer to STARTTLS, which may be an attack")
	errOutOfStep  = errors.New("the relay said more than it was asked")
)

// dial connects, secures, greets and logs in. Whatever goes wrong is trouble of the relay
// and not of the mail: the outcome is always Unavailable.
func (d *dialer) dial(b budget) (*conn, *Error) {
	c := &conn{dialer: d, asked: time.Now()}
	netDialer := net.Dialer{Timeout: d.options.ConnectTimeout, Deadline: b.until}
	socket, err := netDialer.DialContext(b.ctx, "tcp", d.url.Addr())
	if err != nil {
		return nil, c.lost(b, StepConnect, err)
	}
	c.use(socket, socket)
	stop := interruptible(b.ctx, socket)
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
	c.in.reset(stream)
}

// introduce goes from the open socket to where MAIL may be said.
func (c *conn) introduce(b budget) *Error {
	if c.url.mode == implicitTLS {
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
	if c.url.mode == startTLS {
		if failure := c.upgrade(b); failure != nil {
			return failure
		}
	}
	if c.url.login != nil {
		if failure := c.login(b); failure != nil {
			return failure
		}
	}
	if c.in.ahead() {
		return c.lost(b, StepEHLO, errOutOfStep)
	}
	return nil
}

func (c *conn) secure(b budget) *Error {
	if err := c.arm(b, c.options.ConnectTimeout); err != nil {
		return c.lost(b, StepTLS, err)
	}
	encrypted := tls.Client(c.socket, c.dialer.tls)
	if err := encrypted.Handshake(); err != nil {
		return c.lost(b, StepTLS, err)
	}
	c.use(c.socket, encrypted)
	return nil
}

// hello says EHLO. A relay that does not know it, or that a firewall keeps from hearing it,
// is told HELO, as RFC 5321 asks, and offers nothing.
func (c *conn) hello(b budget) *Error {
	failure := c.expect(b, StepEHLO, 2, "EHLO "+c.options.HELO)
	if failure == nil {
		c.offers = readExtensions(string(c.in.text))
	} else if failure.Reply != nil && (failure.Reply.Code == 500 || failure.Reply.Code == 502) {
		failure = c.expect(b, StepEHLO, 2, "HELO "+c.options.HELO)
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
	if err := c.arm(b, c.options.CommandTimeout); err != nil {
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
	c.broken = true
	return &Error{Outcome: Unavailable, Relay: c.url.Addr(), Step: step, Err: b.cause(c.asked, err)}
}

// refused is the relay's refusal. Before a recipient is named even a 5xx is not about the
// mail, so the outcome is Unavailable.
func (c *conn) refused(step Step, code int) *Error {
	return &Error{Outcome: Unavailable, Relay: c.url.Addr(), Step: step, Reply: newReply(code, c.in.text)}
}

func (c *conn) close() { _ = c.socket.Close() }

// quit says QUIT, within a bound, and closes. The relay should be the first to close, so
// that it, too, counts one connection less before the next.
func (c *conn) quit(b budget) {
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
