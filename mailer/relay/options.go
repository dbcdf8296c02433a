package relay

import (
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
)

// Options are the settings of Relays. Zero fields mean the defaults named here; negative
// ones are refused.
type Options struct {
	// MaxConns is the most connections to any one relay. 8. Where the relay takes fewer,
	// and says 4xx to one more, or 432 to a mail over one more, that mail waits for the
	// others. That limit is believed for Breaker.Cooldown.
	MaxConns int
	// MaxConnsPerDomain is how many of them mails to one recipient domain may hold, with
	// its subdomains. Half of MaxConns, at least 1.
	MaxConnsPerDomain int
	// MaxWaiting is how many sends may wait for a connection to a relay; those to one
	// recipient domain get half of it. 1024.
	MaxWaiting int
	// IdleTimeout is how long a connection is kept unused. 30 s.
	IdleTimeout time.Duration

	// ConnectTimeout bounds the TCP connection, and the TLS handshake. 5 s.
	ConnectTimeout time.Duration
	// CommandTimeout bounds the banner, and each command with its whole answer. 10 s.
	CommandTimeout time.Duration
	// RCPTTimeout takes its place for RCPT: a relay may ask the recipient's own server
	// before it answers, which a visitor chooses. 5 s, at most CommandTimeout.
	RCPTTimeout time.Duration
	// FinalDotTimeout bounds the text and the answer to its final dot. When it ends, the
	// outcome is Unknown. 20 s.
	FinalDotTimeout time.Duration
	// Deadline bounds a send as a whole, over all relays and retries; the caller's context
	// can only shorten it. 30 s.
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
	// Now is the clock of the pace, the circuit breaker, tokens and a relay's own limit of
	// connections, in Unix milliseconds. May be nil.
	Now func() int64
}

// Breaker says when a relay that keeps failing is no longer asked: after Failures in a row,
// for Cooldown. Then one mail is tried on it. If that fails, the next rest is twice as long,
// up to MaxCooldown; if it is answered, the relay is in use again.
//
// A failure is a relay that does not do its work: unreachable, silent, broken off, or saying
// 4xx whatever the recipient. What a recipient can bring about is none, since a visitor who
// names recipients could otherwise stop the mail of all; see judge.
type Breaker struct {
	Failures    int           // 5 if zero
	Cooldown    time.Duration // 5 s if zero
	MaxCooldown time.Duration // 2 min if zero, at least Cooldown
}

// Hooks are called from many goroutines at once and must not block. Any may be nil. A relay
// is named by its host:port.
type Hooks struct {
	// Tried is called after each try to hand a mail to a relay. The result is "sent" or an
	// Outcome.
	Tried func(relay, result string, took time.Duration)
	// Paced is called with the time that a mail waited under the pace.
	Paced func(waited time.Duration)
	// Circuit is called when a relay's circuit breaker opens and when it closes.
	Circuit func(relay string, open bool)
}

func (o Options) withDefaults() (Options, error) {
	if err := o.check(); err != nil {
		return o, err
	}
	o.MaxConns = cmp.Or(o.MaxConns, 8)
	o.MaxConnsPerDomain = cmp.Or(o.MaxConnsPerDomain, max(1, o.MaxConns/2))
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1024)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 30*time.Second)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 10*time.Second)
	o.RCPTTimeout = cmp.Or(o.RCPTTimeout, min(5*time.Second, o.CommandTimeout))
	o.FinalDotTimeout = cmp.Or(o.FinalDotTimeout, 20*time.Second)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.HELO = cmp.Or(o.HELO, "localhost")
	o.Breaker.Failures = cmp.Or(o.Breaker.Failures, 5)
	o.Breaker.Cooldown = cmp.Or(o.Breaker.Cooldown, 5*time.Second)
	o.Breaker.MaxCooldown = max(cmp.Or(o.Breaker.MaxCooldown, 2*time.Minute), o.Breaker.Cooldown)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Hooks.Tried == nil {
		o.Hooks.Tried = func(string, string, time.Duration) {}
	}
	if o.Hooks.Paced == nil {
		o.Hooks.Paced = func(time.Duration) {}
	}
	if o.Hooks.Circuit == nil {
		o.Hooks.Circuit = func(string, bool) {}
	}
	return o, nil
}

func (o Options) check() error {
	for _, n := range []int{o.MaxConns, o.MaxConnsPerDomain, o.MaxWaiting, o.Pace.Queue, o.Breaker.Failures} {
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

// circuit puts the breaker to work on one relay.
func (b Breaker) circuit(now func() int64, changed func(open bool)) *breaker.Circuit {
	return breaker.NewCircuit(breaker.Rule(b), now, changed)
}
