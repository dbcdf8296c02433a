package relay

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mailgate/mailgate/internal/breaker"
)

// Options are the settings of Relays. Zero fields mean the defaults named here.
type Options struct {
	// MaxConns is the most connections to any one relay. 8. Emails to one recipient domain,
	// with its subdomains, may hold half of them. Where the relay answers 4xx to a further
	// connection, or 432 to an email on it, that email waits for the other connections.
	MaxConns int
	// Deadline bounds a send as a whole, over all relays and retries; the caller's context
	// can only shorten it. 30 s.
	Deadline time.Duration
	// HELO is the name given in EHLO. "localhost".
	HELO string
	// Pace holds sends back to a steady rate. None by default.
	Pace Pace
	// Logger may be nil. Nothing logged holds an address or a secret.
	Logger *slog.Logger
	// Metrics are registered nowhere by default.
	Metrics Metrics

	limits *limits
}

// Metrics count what Relays do, in seconds. A relay is named by its host:port.
type Metrics struct {
	Tries  prometheus.ObserverVec // of one attempt, by relay and result: "sent" or an Outcome
	Paced  prometheus.Observer    // that an email waited under the pace
	Opened *prometheus.CounterVec // the times that a relay's circuit breaker opened
}

// Buckets are those of times, in seconds: a relay takes tenths of one to many.
var Buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}

// NewMetrics makes and registers the Metrics.
func NewMetrics(registry prometheus.Registerer) Metrics {
	with := promauto.With(registry)
	return Metrics{
		Tries: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mailgate_relay_try_duration_seconds", Help: "Time of one attempt at one relay, by result.", Buckets: Buckets}, []string{"relay", "result"}),
		Paced: with.NewHistogram(prometheus.HistogramOpts{
			Name: "mailgate_relay_paced_seconds", Help: "Time emails waited for the send rate.", Buckets: Buckets}),
		Opened: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_relay_circuit_opens_total", Help: "Times the relay's circuit breaker opened."}, []string{"relay"}),
	}
}

// limits are constants of the product, which tests change.
type limits struct {
	Waiting  int           // sends that wait for a connection; half of them to one domain
	Idle     time.Duration // a connection is kept unused
	Connect  time.Duration // the TCP connection, and the TLS handshake
	Command  time.Duration // the banner, and each command with its whole answer
	RCPT     time.Duration // RCPT: a relay may ask the recipient's own server, which a visitor chooses
	FinalDot time.Duration // the text and the answer to its final dot; after it the outcome is Unknown
	Breaker  breaker.Rule  // see health for what counts as a failure
	Probe    time.Duration // between connections to a relay that could not be reached
	Now      func() int64  // the clock of all but the deadlines, in Unix milliseconds
}

var standard = limits{
	Waiting:  1024,
	Idle:     30 * time.Second,
	Connect:  5 * time.Second,
	Command:  10 * time.Second,
	RCPT:     5 * time.Second,
	FinalDot: 20 * time.Second,
	Breaker:  breaker.Rule{Failures: 5, Cooldown: 5 * time.Second, MaxCooldown: 2 * time.Minute},
	Probe:    5 * time.Second,
	Now:      func() int64 { return time.Now().UnixMilli() },
}

func (o Options) withDefaults() Options {
	o.MaxConns = cmp.Or(o.MaxConns, 8)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.HELO = cmp.Or(o.HELO, "localhost")
	o.limits = cmp.Or(o.limits, &standard)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics.Tries == nil {
		o.Metrics = NewMetrics(nil)
	}
	return o
}
