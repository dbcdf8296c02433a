package api

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Buckets in seconds: a decision takes microseconds in one process and
// milliseconds in a cluster; a relay takes tenths of a second to many seconds.
var (
	decisionBuckets = []float64{.000005, .00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .25, 1}
	relayBuckets    = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}
)

// metrics are the server's figures. None has a label that a caller chooses, so their
// number is bounded, and none knows a mailbox.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	sends     *prometheus.CounterVec
	shadows   *prometheus.CounterVec
	actions   *prometheus.CounterVec
	codes     *prometheus.CounterVec
	decisions prometheus.Histogram
	relays    *prometheus.HistogramVec
	refunds   *prometheus.CounterVec
	resets    prometheus.Counter
	hour      lastHour
	now       func() int64
}

func newMetrics(o Options, connections func() int) (*metrics, error) {
	m := &metrics{
		now: o.Now,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_http_requests_total", Help: "Requests answered, by route and HTTP status."}, []string{"route", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mailgate_http_request_duration_seconds", Help: "Time from a request's arrival to its answer.",
			Buckets: append([]float64{.0001, .0005}, relayBuckets...)}, []string{"route"}),
		sends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_sends_total", Help: "Send requests by outcome; rule and limit name what denied them."}, []string{"outcome", "rule", "limit"}),
		shadows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_shadow_refusals_total", Help: "Admitted sends that a shadow rule would have refused."}, []string{"rule", "limit"}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_actions_total", Help: "Takes of actions by outcome; limit names what denied them."}, []string{"action", "outcome", "limit"}),
		codes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_codes_checked_total", Help: "Code checks by result."}, []string{"result"}),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mailgate_decision_duration_seconds", Help: "Time to decide a send.", Buckets: decisionBuckets}),
		relays: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mailgate_relay_duration_seconds", Help: "Time to hand an email to a relay, by outcome.", Buckets: relayBuckets}, []string{"outcome"}),
		refunds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_refunds_total", Help: "Refunds of quota for emails that were not sent, by result."}, []string{"result"}),
		resets: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mailgate_resets_total", Help: "Resets by operators: of mailboxes, and of subjects of actions and rules."}),
	}
	m.fromZero()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": o.Version}})
	info.Set(1)
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mailgate_http_connections", Help: "Open connections."}, func() float64 { return float64(connections()) })
	all := []prometheus.Collector{m.requests, m.durations, m.sends, m.shadows, m.actions, m.codes, m.decisions, m.relays, m.refunds, m.resets, info, open}
	if o.RelayStats != nil {
		all = append(all, newRelayGauges(o.RelayStats))
	}
	return m, register(o.Metrics, all...)
}

func register(registry *prometheus.Registry, all ...prometheus.Collector) error {
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return fmt.Errorf("api: registering the metrics: %w", err)
		}
	}
	return nil
}

// fromZero has every series there from the start that is known by then: of one that begins
// with its first count, Prometheus sees no increase.
func (m *metrics) fromZero() {
	for kind := range sendProblems {
		m.sends.WithLabelValues(string(kind), "", "")
	}
	for _, outcome := range []string{outcomeSent, outcomeReplayed} {
		m.sends.WithLabelValues(outcome, "", "")
	}
	for _, result := range []string{delivery.RefundDone, delivery.RefundGivenUp} {
		m.refunds.WithLabelValues(result)
	}
}

func (m *metrics) sent(outcome string) {
	m.sends.WithLabelValues(outcome, "", "").Inc()
	if outcome == outcomeSent {
		m.hour.count(m.now(), 1, 0)
	}
}

func (m *metrics) denied(rule, limit string) {
	m.sends.WithLabelValues("denied", rule, limit).Inc()
	m.hour.count(m.now(), 0, 1)
}

// delivery is what package delivery counts.
func (m *metrics) delivery() delivery.Metrics {
	return delivery.Metrics{Decisions: m.decisions, Relays: m.relays, Refunds: m.refunds}
}

// gatherEvery is how often the metrics are gathered when more is asked of them than gatherAtOnce
// can be: it takes a processor a millisecond or two.
const (
	gatherEvery  = 100 * time.Millisecond
	gatherAtOnce = 10
)

// exposition is the text of /metrics that was made last.
type exposition struct {
	mu    sync.Mutex
	text  []byte
	spent time.Time // until when the time of all gatherings so far lasts, at one each gatherEvery
}

// metricsFormat is the text format of Prometheus.
var metricsFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

// showMetrics is /metrics. Beyond ten a second it shows the text of up to 100 ms ago.
func (s *Server) showMetrics(c *fiber.Ctx) error {
	last := &s.exposition
	last.mu.Lock()
	defer last.mu.Unlock()
	now := time.Now()
	if last.spent.Before(now) {
		last.spent = now
	}
	if last.spent.Sub(now) <= (gatherAtOnce-1)*gatherEvery {
		text, err := s.gather()
		if err != nil {
			return err
		}
		last.text, last.spent = text, last.spent.Add(gatherEvery)
	}
	return respondRaw(c, string(metricsFormat), last.text)
}

func (s *Server) gather() ([]byte, error) {
	families, err := s.with.Metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering the metrics: %w", err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, metricsFormat)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, fmt.Errorf("writing the metrics: %w", err)
		}
	}
	return text.Bytes(), nil
}

// RelayHooks makes and registers the metrics of the relays and returns the hooks that
// feed them, for relay.Options. The registry is the one the Server is given.
func RelayHooks(registry *prometheus.Registry) (relay.Hooks, error) {
	tries := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "mailgate_relay_try_duration_seconds", Help: "Time of one attempt at one relay, by result.", Buckets: relayBuckets}, []string{"relay", "result"})
	paced := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "mailgate_relay_paced_seconds", Help: "Time emails waited for the send rate.", Buckets: relayBuckets})
	openings := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mailgate_relay_circuit_opens_total", Help: "Times the relay's circuit breaker opened."}, []string{"relay"})
	hooks := relay.Hooks{
		Tried: func(relay, result string, took time.Duration) {
			tries.WithLabelValues(relay, result).Observe(took.Seconds())
		},
		Paced: func(waited time.Duration) { paced.Observe(waited.Seconds()) },
		Circuit: func(relay string, open bool) {
			if open {
				openings.WithLabelValues(relay).Inc()
			}
		},
	}
	return hooks, register(registry, tries, paced, openings)
}

// relayGauges are the current figures of the relays, read when metrics are gathered.
type relayGauges struct {
	stats                         func() []relay.Stats
	connections, waiting, circuit *prometheus.Desc
}

func newRelayGauges(stats func() []relay.Stats) *relayGauges {
	return &relayGauges{
		stats:       stats,
		connections: prometheus.NewDesc("mailgate_relay_connections", "Open connections to the relay, by state.", []string{"relay", "state"}, nil),
		waiting:     prometheus.NewDesc("mailgate_relay_waiting", "Sends waiting for a connection to the relay.", []string{"relay"}, nil),
		circuit:     prometheus.NewDesc("mailgate_relay_circuit_open", "1 while the relay's circuit breaker is open.", []string{"relay"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (g *relayGauges) Describe(to chan<- *prometheus.Desc) {
	to <- g.connections
	to <- g.waiting
	to <- g.circuit
}

// Collect implements prometheus.Collector.
func (g *relayGauges) Collect(to chan<- prometheus.Metric) {
	gauge := func(of *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, float64(value), labels...)
	}
	for _, relay := range byName(g.stats()) {
		gauge(g.connections, relay.Idle, relay.Relay, "idle")
		gauge(g.connections, relay.Open-relay.Idle, relay.Relay, "busy")
		gauge(g.waiting, relay.Waiting, relay.Relay)
		open := 0
		if relay.CircuitOpen {
			open = 1
		}
		gauge(g.circuit, open, relay.Relay)
	}
}

// byName has the relays of one host and port as one, as two accounts there are: a figure
// that comes twice would be a mistake to Prometheus. Its circuit is open if one of them is.
func byName(rows []relay.Stats) []relay.Stats {
	var all []relay.Stats
	for _, row := range rows {
		i := slices.IndexFunc(all, func(r relay.Stats) bool { return r.Relay == row.Relay })
		if i < 0 {
			all = append(all, row)
			continue
		}
		one := &all[i]
		one.Open, one.Idle, one.Waiting = one.Open+row.Open, one.Idle+row.Idle, one.Waiting+row.Waiting
		one.CircuitOpen = one.CircuitOpen || row.CircuitOpen
	}
	return all
}
