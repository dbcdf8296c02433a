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
	life    context.Context
	stop    context.CancelFunc
	done    chan struct{}
}

// newLookout looks for as long as it takes to learn of an outage: a history that is slow is none
// that is away.
func newLookout(registry *prometheus.Registry, s *settings.Settings, ready func(context.Context) error) *lookout {
	l := &lookout{ready: ready, timeout: storePatience(s), done: make(chan struct{}), usable: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_store_ready",
		Help: "1 while the history can be used; asked every ten seconds.",
	})}
	l.life, l.stop = context.WithCancel(context.Background())
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
			case <-l.life.Done():
				return
			}
		}
	}()
}

// end cuts a look short that is under way: whoever stops this process does not wait for a Redis
// that hangs.
func (l *lookout) end() {
	l.stop()
	<-l.done
}

func (l *lookout) look() {
	ctx, cancel := context.WithTimeout(l.life, l.timeout)
	defer cancel()
	switch err := l.ready(ctx); {
	case err == nil:
		l.usable.Set(1)
	case l.life.Err() == nil:
		l.usable.Set(0)
	}
}
