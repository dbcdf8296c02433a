package mailer

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/mailer/oauth"
)

// opener makes connections to one relay, up to where mail may be sent.
type opener struct {
	url     RelayURL
	tls     *tls.Config
	tokens  *oauth.Tokens // nil: the password
	options Options
	// apart says that RCPT waits for MAIL's answer even where the relay offers
	// PIPELINING: it was once not to be seen which of the two it was silent at.
	apart atomic.Bool
	slow  slowShare
}

func newOpener(url RelayURL, o Options) *opener {
	var tokens *oauth.Tokens
	if url.grant != nil {
		tokens = oauth.NewTokens(*url.grant, o.CommandTimeout, o.Now)
	}
	return &opener{
		url:     url,
		tokens:  tokens,
		options: o,
		slow:    newSlowShare(min(o.MaxConns, o.MaxConnsPerDomain)),
		tls: &tls.Config{
			ServerName:         url.serverName,
			RootCAs:            url.roots,
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(4),
		},
	}
}

// The reasons for not talking to a relay that would talk to us.
var (
	errNoSTARTTLS = errors.New("the relay does not offer STARTTLS, and no mail goes out without it")
	errInjection  = errors.New("clear text after the answer to STARTTLS: somebody is on the line")
	errOutOfStep  = errors.New("the relay said more than it was asked")

	errSevenBitsOnly = errors.New("the mail has octets above 127 and the relay does not offer 8BITMIME")
	errTooGreat      = errors.New("the mail is greater than the relay takes any")
)

// open dials, secures, greets and logs in. Whatever goes wrong is the relay's
// trouble and none of the mail's: the outcome is always Unavailable.
func (o *opener) open(p patience) (*smtpConn, *SendError) {
	began := time.Now()
	socket, err := o.dial(p)
	if err != nil {
		return nil, &SendError{Outcome: Unavailable, Relay: o.url.Addr(), Step: StepConnect, Err: p.cause(began, err)}
	}
	c := &smtpConn{opener: o, relay: o.url.Addr(), socket: socket, stream: socket}
	c.in.reset(socket)
	stop := interruptible(p.ctx, socket)
	failure := o.introduce(p, c)
	if !stop() && failure == nil {
		failure = c.lost(p, StepConnect, p.ctx.Err())
	}
	if failure != nil {
		c.close()
		return nil, failure
	}
	return c, nil
}

func (o *opener) dial(p patience) (net.Conn, error) {
	dialer := net.Dialer{Timeout: o.options.ConnectTimeout, Deadline: p.until}
	return dialer.DialContext(p.ctx, "tcp", o.url.Addr())
}

// introduce goes from the open socket to where MAIL may be said.
func (o *opener) introduce(p patience, c *smtpConn) *SendError {
	if o.url.mode == implicitTLS {
		if failure := o.secure(p, c); failure != nil {
			return failure
		}
	}
	if failure := c.banner(p); failure != nil {
		return failure
	}
	if failure := c.hello(p, o.options.HELO); failure != nil {
		return failure
	}
	if o.url.mode == startTLS {
		if failure := o.upgrade(p, c); failure != nil {
			return failure
		}
	}
	if o.url.login != nil {
		if failure := o.login(p, c); failure != nil {
			return failure
		}
	}
	if c.in.ahead() {
		return c.lost(p, StepEHLO, errOutOfStep)
	}
	return nil
}

// secure puts TLS on the socket and forgets all that was heard before.
func (o *opener) secure(p patience, c *smtpConn) *SendError {
	if err := c.arm(p, o.options.ConnectTimeout); err != nil {
		return c.lost(p, StepTLS, err)
	}
	encrypted := tls.Client(c.socket, o.tls)
	if err := encrypted.Handshake(); err != nil {
		return c.lost(p, StepTLS, err)
	}
	c.stream = encrypted
	c.in.reset(encrypted)
	c.offers = extensions{}
	return nil
}

func (c *smtpConn) banner(p patience) *SendError {
	if err := c.arm(p, c.opener.options.CommandTimeout); err != nil {
		return c.lost(p, StepBanner, err)
	}
	code, err := c.in.next()
	if err != nil {
		return c.lost(p, StepBanner, err)
	}
	if code/100 != 2 {
		return c.refused(StepBanner, code)
	}
	return nil
}

// hello introduces us. A relay that does not know EHLO, or that a firewall keeps from
// hearing it, is told HELO, as RFC 5321 asks, and offers nothing.
func (c *smtpConn) hello(p patience, name string) *SendError {
	code, err := c.ask(p, "EHLO "+name)
	old := err == nil && (code == 500 || code == 502)
	if old {
		code, err = c.ask(p, "HELO "+name)
	}
	if err != nil {
		return c.lost(p, StepEHLO, err)
	}
	if code/100 != 2 {
		return c.refused(StepEHLO, code)
	}
	if !old {
		c.offers = readExtensions(string(c.in.text))
	}
	return nil
}

// upgrade turns clear text into TLS, or fails: there is no third way.
func (o *opener) upgrade(p patience, c *smtpConn) *SendError {
	if !c.offers.startTLS {
		return c.lost(p, StepSTARTTLS, errNoSTARTTLS)
	}
	code, err := c.ask(p, "STARTTLS")
	if err != nil {
		return c.lost(p, StepSTARTTLS, err)
	}
	if code != 220 {
		return c.refused(StepSTARTTLS, code)
	}
	// What came along with the 220 came in the clear. Read later, it would
	// pass for the relay's word under TLS (CVE-2011-0411 and its kin).
	if c.in.ahead() {
		return c.lost(p, StepSTARTTLS, errInjection)
	}
	if failure := o.secure(p, c); failure != nil {
		return failure
	}
	return c.hello(p, o.options.HELO)
}

// extensions is what EHLO offered, as far as it matters here.
type extensions struct {
	pipelining, size, eightBitMIME, startTLS bool
	most                                     int    // octets of a mail; 0 where it does not say
	auth                                     string // the ways to log in, sorted, a space between
}

// login says whether this way to log in is offered.
func (e extensions) login(mechanism string) bool {
	return slices.Contains(strings.Split(e.auth, " "), mechanism)
}

func readExtensions(text string) extensions {
	var e extensions
	var mechanisms []string
	lines := strings.Split(strings.ToUpper(text), "\n")
	for _, line := range lines[1:] {
		// "AUTH=PLAIN" is how some servers still say it.
		words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '=' })
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "PIPELINING":
			e.pipelining = true
		case "SIZE":
			e.size = true
			if len(words) > 1 {
				e.most, _ = strconv.Atoi(words[1])
			}
		case "8BITMIME":
			e.eightBitMIME = true
		case "STARTTLS":
			e.startTLS = true
		case "AUTH":
			mechanisms = append(mechanisms, words[1:]...)
		}
	}
	slices.Sort(mechanisms)
	e.auth = strings.Join(slices.Compact(mechanisms), " ")
	return e
}

// unfit says why there is no sense in offering this mail, or nothing.
func (e extensions) unfit(l *letter) error {
	switch {
	case l.eightBit && !e.eightBitMIME:
		return errSevenBitsOnly
	case e.most > 0 && l.size > e.most:
		return errTooGreat
	}
	return nil
}
