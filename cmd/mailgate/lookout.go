package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// lookEvery bounds how long an outage goes unnoticed that no request meets with.
const lookEvery = 10 * time.Second

// A lookout asks the history at times whether it can be used, as /readyz does. So an outage
// at night is in the log and the metrics before the first user meets with it, and a node
// that goes on without Redis has met it as soon as it serves.
type lookout struct {
	ready   func(context.Context) error
	timeout time.Duration // how long that may take
	usable  prometheus.Gauge
	stop    chan struct{}
	done    chan struct{}
}

// newLookout looks for as long as it takes to learn of an outage: a history that is slow is none
// that is away.
func newLookout(registry *prometheus.Registry, s *settings.Settings, ready func(context.Context) error) *lookout {
	l := &lookout{ready: ready, timeout: storePatience(s), stop: make(chan struct{}), done: make(chan struct{}), usable: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_store_ready",
		Help: "1 while the history can be used; asked every ten seconds.",
	})}
	registry.MustRegister(l.usable)
	return l
}

// begin looks once, and then again and again until end.
func (l *lookout) begin() {
	l.look()
	go func() {
		defer close(l.done)
		again := time.NewTicker(lookEvery)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				l.look()
			case <-l.stop:
				return
			}
		}
	}()
}

// end waits for a look that is under way: one that is cut off would take that for an outage.
func (l *lookout) end() {
	close(l.stop)
	<-l.done
}

func (l *lookout) look() {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	if l.ready(ctx) == nil {
		l.usable.Set(1)
	} else {
		l.usable.Set(0)
	}
}
