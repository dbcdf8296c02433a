package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
	"github.com/prometheus/client_golang/prometheus"
)

// Options are what a Server works with. The first group is required; everything below it has the
// default that its comment ends with.
type Options struct {
	Live  Live
	Relay delivery.Relay

	// Identity says which addresses are one mailbox. The zero Identity folds nothing.
	Identity address.Identity
	// APIKeys open the routes of applications and AdminKeys those of operators, which are closed
	// if there are API keys only. Without keys every program that reaches the listener is a caller, so it should be a loopback one: then
	// the Host must be a loopback one, too. Requests that a page from elsewhere made a browser
	// send are refused, and those that a proxy has passed on, unless TrustedProxies are set.
	APIKeys, AdminKeys Keys
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	// Lookups bounds how often a caller, or without keys an address of the network, may look
	// mailboxes up and use the routes of operators, so that a stolen key does not list which
	// mailboxes were sent email. No bound, if nil.
	Lookups throttle.Limiter
	// Countdowns bounds how often an address of the network may ask how long a countdown
	// still lasts. No bound, if nil.
	Countdowns throttle.Limiter

	// Secret seals countdown tokens, and keys the hashes of codes and of requests, and of
	// mailboxes and subjects in logs. Servers that share their records share it as well. 16
	// bytes or more, impossible to guess; a random one, if nil.
	Secret []byte
	// Codes keeps the codes made here, so that they can be checked. If nil, codes are
	// mailed all the same, and there is no POST /verify-code.
	Codes *verify.Codes
	// Guesses is the limiter of Codes, which operators read and reset. Required with Codes.
	Guesses throttle.Limiter
	// Requests keeps the answers to sends with an Idempotency-Key, which are refused if it is
	// nil. Its lease is SendDeadline and delivery.LeaseRest, or longer.
	Requests *idempotency.Requests
	// SendDeadline bounds a request as a whole, decision and relay. 15 s.
	SendDeadline time.Duration
	// StoreTimeout is how long a store may take to refund a charge or to store an
	// answer, at each try, and to say whether it is ready. Less than delivery.LeaseRest; 2 s.
	StoreTimeout time.Duration

	// ReadTimeout bounds the arrival of a request, first to last byte. 5 s.
	ReadTimeout time.Duration
	// IdleTimeout is how long a kept connection may be silent. 60 s.
	IdleTimeout time.Duration
	// MaxConnections are open at once; the next ones wait. 10,000.
	MaxConnections int
	// MaxPerCaller requests under one key's name are in progress at once, so that one caller
	// cannot use everything; one more is refused. A quarter of MaxConnections.
	MaxPerCaller int
	// MaxWithoutKey requests without a valid key are in progress at once, on all paths, so that
	// they leave the processors to those with one; one more is refused. 8, or 2 for each
	// processor. Any number where no APIKeys are set, or with a Fallback.
	MaxWithoutKey int
	// Ops has /metrics served by ServeOps, and by Serve no longer. The health checks are at both.
	Ops bool
	// DrainDelay is how long Shutdown keeps serving with /readyz at 503, so that a
	// load balancer notices before connections are refused. None.
	DrainDelay time.Duration

	// Ready says whether the stores can be asked. Always, if nil.
	Ready func(context.Context) error
	// DegradedSince is since when this server continues without the history that it shares
	// with others, in Unix milliseconds; 0 while it does not. Never, if nil.
	DegradedSince func() int64
	// Fallback answers the paths that no route has, instead of a 404. They need no key.
	Fallback http.Handler

	Log   *slog.Logger // a line for each request; nil for none
	Audit *slog.Logger // what operators did; Log if nil
	// Metrics is where the server's metrics are registered and what /metrics shows.
	// A new registry, if nil.
	Metrics *prometheus.Registry
	// RelayStats feeds the gauges of the relays. None, if nil.
	RelayStats func() []relay.Stats

	OpenAPI []byte       // what /openapi.yaml and /docs show
	Version string       // what the docs and the metrics say; "dev"
	Now     func() int64 // Unix milliseconds; the system's clock
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	o.SendDeadline = cmp.Or(o.SendDeadline, 15*time.Second)
	o.StoreTimeout = cmp.Or(o.StoreTimeout, 2*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 5*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 60*time.Second)
	o.MaxConnections = cmp.Or(o.MaxConnections, 10_000)
	o.MaxPerCaller = cmp.Or(o.MaxPerCaller, max(1, o.MaxConnections/4))
	o.MaxWithoutKey = cmp.Or(o.MaxWithoutKey, defaultWithoutKey())
	o.Version = cmp.Or(o.Version, "dev")
	if o.Secret == nil {
		o.Secret = []byte(rand.Text())
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.DegradedSince == nil {
		o.DegradedSince = func() int64 { return 0 }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Audit = cmp.Or(o.Audit, o.Log)
	o.Metrics = cmp.Or(o.Metrics, prometheus.NewRegistry())
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	return o
}

// check finds options that are missing or invalid. The error names the option.
func (o Options) check() error {
	if err := o.Live.check(); err != nil {
		return err
	}
	switch {
	case o.Relay == nil:
		return errors.New("api: Relay is missing")
	case o.APIKeys.Shares(o.AdminKeys):
		return errors.New("api: a secret is both an API key and an admin key, which would make every back end an operator")
	case o.Codes != nil && o.Guesses == nil:
		return errors.New("api: Codes is set, but Guesses is missing")
	case o.StoreTimeout >= delivery.LeaseRest:
		return fmt.Errorf("api: StoreTimeout is %v or longer, which is what a lease has left after SendDeadline", delivery.LeaseRest)
	case o.MaxConnections < 0:
		return errors.New("api: MaxConnections is negative")
	case o.MaxPerCaller < 0:
		return errors.New("api: MaxPerCaller is negative")
	case o.MaxWithoutKey < 0:
		return errors.New("api: MaxWithoutKey is negative")
	}
	for name, d := range map[string]time.Duration{
		"SendDeadline": o.SendDeadline, "StoreTimeout": o.StoreTimeout, "ReadTimeout": o.ReadTimeout, "IdleTimeout": o.IdleTimeout, "DrainDelay": o.DrainDelay,
	} {
		if d < 0 {
			return fmt.Errorf("api: %s is negative", name)
		}
	}
	return nil
}
