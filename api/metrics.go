package api

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/suppression/bounce"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/time/rate"
)

// metrics are the server's figures beside those of the ledger. None has a label that a caller chooses, so their number is
// bounded, and none names a mailbox.
type metrics struct {
	requests   *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	notMe      *prometheus.CounterVec
	bounces    *prometheus.CounterVec
	challenges *prometheus.CounterVec
}

func newMetrics(o Options, connections func() int) *metrics {
	with := promauto.With(o.Metrics)
	m := &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_http_requests_total", Help: "Requests answered, by route and HTTP status."}, []string{"route", "status"}),
		durations: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mailgate_http_request_duration_seconds", Help: "Time from a request's arrival to its answer.",
			Buckets: append([]float64{.0001, .0005}, relay.Buckets...)}, []string{"route"}),
		notMe: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_not_me_total", Help: "Recipients who said that they did not ask for an email, by the key that sent it."}, []string{"key"}),
		bounces: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_bounces_total", Help: "Events that email providers reported, by what happened to the email and what came of it."}, []string{"provider", "kind", "outcome"}),
		challenges: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_challenges_total", Help: "Solutions of challenges that sends had, by kind and result."}, []string{"kind", "result"}),
	}
	for _, kind := range challenge.Kinds {
		for _, result := range []string{"solved", "unsolved", "failed"} {
			m.challenges.WithLabelValues(kind, result)
		}
	}
	for _, name := range o.Access.APIKeys.Names() {
		m.notMe.WithLabelValues(name)
	}
	for _, r := range suppression.Reasons {
		with.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mailgate_suppressions", Help: "Entries of the suppression list, by reason.", ConstLabels: prometheus.Labels{"reason": string(r)}},
			func() float64 { return float64(o.Suppressions.Counts()[r]) })
	}
	with.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": o.Docs.Version}}).Set(1)
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mailgate_http_connections", Help: "Open connections."}, func() float64 { return float64(connections()) })
	o.Metrics.MustRegister(prometheus.CollectorFunc(func(to chan<- prometheus.Metric) { relayGauges(o.Health.RelayStats(), to) }))
	for _, hook := range o.Hooks {
		if _, reports := hook.(hooks.Reporter); reports {
			for _, kind := range bounce.Kinds {
				m.bounces.WithLabelValues(hook.Name(), string(kind), string(bounce.Applied))
			}
		}
	}
	return m
}

// exposition is the last text of /metrics. Making it takes a millisecond or two of a processor, so
// that is done ten times a second at most.
type exposition struct {
	mu         sync.Mutex
	text       []byte
	gatherings *rate.Limiter
}

// showMetrics serves /metrics.
func (s *Server) showMetrics(c *fiber.Ctx) error {
	last := &s.exposition
	last.mu.Lock()
	defer last.mu.Unlock()
	if last.gatherings.Allow() {
		families, err := s.with.Metrics.Gather()
		if err != nil {
			return fmt.Errorf("gathering the metrics: %w", err)
		}
		var text bytes.Buffer
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
				return fmt.Errorf("writing the metrics: %w", err)
			}
		}
		last.text = text.Bytes()
	}
	requestOf(c).Level = slog.LevelDebug
	return respondRaw(c, string(expfmt.NewFormat(expfmt.TypeTextPlain)), last.text)
}

var (
	relayConnections = prometheus.NewDesc("mailgate_relay_connections", "Open connections to the relay, by state.", []string{"relay", "state"}, nil)
	relayWaiting     = prometheus.NewDesc("mailgate_relay_waiting", "Sends waiting for a connection to the relay.", []string{"relay"}, nil)
	relayCircuit     = prometheus.NewDesc("mailgate_relay_circuit_open", "1 while the relay's circuit breaker is open.", []string{"relay"}, nil)
)

// relayGauges collects the current figures of the relays. Accounts at one host and port are one relay, since a label must
// not repeat. Its circuit is open if one of theirs is.
func relayGauges(stats []relay.Stats, to chan<- prometheus.Metric) {
	gauge := func(of *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, float64(value), labels...)
	}
	all := map[string]relay.Stats{}
	for _, row := range stats {
		one := all[row.Relay]
		one.Open, one.Idle, one.Waiting = one.Open+row.Open, one.Idle+row.Idle, one.Waiting+row.Waiting
		one.CircuitOpen = one.CircuitOpen || row.CircuitOpen
		all[row.Relay] = one
	}
	for name, one := range all {
		gauge(relayConnections, one.Idle, name, "idle")
		gauge(relayConnections, one.Open-one.Idle, name, "busy")
		gauge(relayWaiting, one.Waiting, name)
		gauge(relayCircuit, map[bool]int{true: 1}[one.CircuitOpen], name)
	}
}
