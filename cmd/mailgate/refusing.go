package main

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/redisstore"
)

// refusing is the history in Redis alone, of a node that refuses while it is away. It says
// so when that begins and when it ends.
func refusing(shared history, store *redisstore.Store, log *slog.Logger) history {
	store.Watch(
		func(cause error) {
			log.Warn("the shared history is away: this node refuses until it is back", "cause", cause)
		},
		func(lasted time.Duration) {
			log.Info("the shared history is back", "lasted", lasted.Round(time.Millisecond).String())
		})
	shared.metrics = append(shared.metrics, newRefusingGauge(store.AwaySince))
	return shared
}

// newRefusingGauge is since when a node refuses, for as long as it does.
func newRefusingGauge(since func() time.Time) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mailgate_store_refusing_since_timestamp_seconds",
		Help: "Since when this node refuses, as the history in Redis cannot be used; 0 while it can.",
	}, func() float64 {
		if at := since(); !at.IsZero() {
			return float64(at.UnixMilli()) / 1000
		}
		return 0
	})
}
