package mailer

import (
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mailgate/mailgate/clock"
)

// Options are the settings of Relays. Zero fields mean the defaults named
// here; negative ones are refused.
type Options struct {
	// MaxConns is the most connections to any one relay. 8. Where it takes fewer, and
	// says 4xx to one more, or 432 to a mail over one more, that mail waits for the
	// others. This is believed for Breaker.Cooldown, as it may have been trouble of a
	// moment.
	MaxConns int
	// MaxConnsPerDomain is how many of them mails to one recipient domain may
	// hold at once, with its subdomains, so that a domain whose recipients take
	// their time cannot stop the mail of the others. Half of MaxConns, but at
	// least 1; MaxConns or more means no limit. All domains together hold as
	// many where RCPT's answer takes longer than a fifth of RCPTTimeout: a mail
	// whose recipient is that slow while there are so many is Unavailable. And a
	// quarter of MaxConns is kept for domains for which the relay lately
	// answered sooner than that.
	MaxConnsPerDomain int
	// MaxWaiting is how many sends may wait for a connection before one is
	// turned away with ErrBusy: the next, or one of the caller that has the most
	// waiting if its are more than those of the next one's. A caller's sends to
	// one recipient domain may fill half of it. Callers are served in turn, and each one's sends in
	// order of arrival, but the last first once the first has waited for a fifth
	// of RCPTTimeout. 1024.
	MaxWaiting int
	// MaxMailsPerConn is when a connection is retired. 10: an Exim that is set up
	// as it comes delivers so many of a connection's mails at once, and leaves more
	// for its next queue run, half an hour later.
	MaxMailsPerConn int
	// IdleTimeout is how long a connection is kept unused. 30 s.
	IdleTimeout time.Duration

	// ConnectTimeout bounds the TCP connection, and the TLS handshake. 5 s.
	ConnectTimeout time.Duration
	// CommandTimeout bounds the relay's banner and each command with the whole
	// of its answer. 10 s.
	CommandTimeout time.Duration
	// RCPTTimeout takes its place for RCPT, once MAIL was answered: a relay may
	// ask the recipient's own server before it answers, and that server, which
	// anybody can choose, may be slow on purpose. Only MaxConnsPerDomain
	// connections at once wait so long, the others a fifth of it. 5 s, but at
	// most CommandTimeout.
	RCPTTimeout time.Duration
	// FinalDotTimeout bounds the mail's text and the answer to its final dot.
	// When it ends, nobody knows whether the mail was delivered. 20 s.
	FinalDotTimeout time.Duration
	// Deadline bounds a send as a whole, over all relays and retries; the
	// caller's context can only shorten it. 30 s.
	Deadline time.Duration

	// HELO is the name given in EHLO. "localhost".
	HELO string
	// Pace holds sends back to a steady rate. None by default.
	Pace Pace
	// Breaker stops asking a relay that keeps failing.
	Breaker Breaker

	// Logger may be nil. Nothing logged holds an address or a secret.
	Logger *slog.Logger
	// Hooks feed metrics.
	Hooks Hooks
	// Now is the clock of pace, breaker and idle connections, in Unix
	// milliseconds; deadlines on the network go by the system's. May be nil.
	Now func() int64
}

// Hooks are called as things happen, from many goroutines at once, and must
// not block. Any may be nil. A relay is named by its host:port.
type Hooks struct {
	// Tried is called after each try to hand a mail to a relay. The result is
	// "sent", "rejected", "unavailable", "unknown" or "busy".
	Tried func(relay, result string, took time.Duration)
	// Paced is called with the time a mail waited for its turn, 0 if it left at once.
	Paced func(waited time.Duration)
	// Circuit is called when a relay's breaker opens and when it closes.
	Circuit func(relay string, open bool)
}

func (o Options) withDefaults() (Options, error) {
	if err := o.check(); err != nil {
		return o, err
	}
	o.MaxConns = cmp.Or(o.MaxConns, 8)
	o.MaxConnsPerDomain = cmp.Or(o.MaxConnsPerDomain, max(1, o.MaxConns/2))
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1024)
	o.MaxMailsPerConn = cmp.Or(o.MaxMailsPerConn, 10)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 30*time.Second)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 10*time.Second)
	o.RCPTTimeout = cmp.Or(o.RCPTTimeout, min(5*time.Second, o.CommandTimeout))
	o.FinalDotTimeout = cmp.Or(o.FinalDotTimeout, 20*time.Second)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.HELO = cmp.Or(o.HELO, "localhost")
	o.Breaker = o.Breaker.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	o.Hooks = o.Hooks.withDefaults()
	return o, nil
}

func (o Options) check() error {
	for _, n := range []int{o.MaxConns, o.MaxConnsPerDomain, o.MaxWaiting, o.MaxMailsPerConn,
		o.Pace.Queue, o.Breaker.Failures} {
		if n < 0 {
			return errors.New("relay settings: no count may be negative")
		}
	}
	for _, d := range []time.Duration{o.IdleTimeout, o.ConnectTimeout, o.CommandTimeout, o.RCPTTimeout,
		o.FinalDotTimeout, o.Deadline, o.Breaker.Cooldown, o.Breaker.MaxCooldown} {
		if d < 0 {
			return errors.New("relay settings: no time may be negative")
		}
	}
	if strings.ContainsFunc(o.HELO, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return errors.New("relay settings: the HELO name must be ASCII without spaces")
	}
	return o.Pace.check()
}

func (h Hooks) withDefaults() Hooks {
	if h.Tried == nil {
		h.Tried = func(string, string, time.Duration) {}
	}
	if h.Paced == nil {
		h.Paced = func(time.Duration) {}
	}
	if h.Circuit == nil {
		h.Circuit = func(string, bool) {}
	}
	return h
}
