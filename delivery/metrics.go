package delivery

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
)

// Metrics count what a Service does.
type Metrics struct {
	Decisions  prometheus.Observer    // seconds that the rules took
	Relays     prometheus.ObserverVec // seconds that a relay took, by outcome
	Refunds    *prometheus.CounterVec // by RefundDone and RefundGivenUp
	Suppressed *prometheus.CounterVec // by the reason
}

// decisionBuckets are in seconds: a decision takes microseconds in one process and milliseconds in a cluster.
var decisionBuckets = []float64{.000005, .00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .25, 1}

// NewMetrics makes and registers the Metrics. What alerts use begins at zero: Prometheus sees no increase in a series that
// begins with its first count.
func NewMetrics(registry prometheus.Registerer) Metrics {
	with := promauto.With(registry)
	m := Metrics{
		Decisions: with.NewHistogram(prometheus.HistogramOpts{
			Name: "mailgate_decision_duration_seconds", Help: "Time to decide a send.", Buckets: decisionBuckets}),
		Relays: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mailgate_relay_duration_seconds", Help: "Time to hand an email to a relay, by outcome.", Buckets: relay.Buckets}, []string{"outcome"}),
		Refunds: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_refunds_total", Help: "Refunds of quota for emails that were not sent, by result."}, []string{"result"}),
		Suppressed: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_suppressed_sends_total", Help: "Sends refused because the recipient is suppressed, by reason."}, []string{"reason"}),
	}
	for _, result := range []string{RefundDone, RefundGivenUp} {
		m.Refunds.WithLabelValues(result)
	}
	for _, reason := range suppression.Reasons {
		m.Suppressed.WithLabelValues(string(reason))
	}
	return m
}
