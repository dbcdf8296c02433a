package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// health looks whether the store can be used, as /readyz does, so that an outage at night
// shows before a request meets it.
type health struct {
	ready   func(context.Context) error
	timeout time.Duration
	usable  prometheus.Gauge
	refuses *slog.Logger  // told of outages in which this node refuses; nil if it logs them elsewhere
	since   atomic.Int64  // since when it refuses, in milliseconds; 0 while it does not
	failed  chan struct{} // a call has failed
}

const (
	checkInterval = 10 * time.Second // while the store is ready
	retryInterval = time.Second      // while it is not
)

func newHealth(ready func(context.Context) error, timeout time.Duration) *health {
	return &health{ready: ready, timeout: timeout, failed: make(chan struct{}, 1), usable: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_store_ready",
		Help: "1 while the history can be used; checked every ten seconds.",
	})}
}

// sinceGauge is since when this node refuses.
func (h *health) sinceGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mailgate_store_refusing_since_timestamp_seconds",
		Help: "Since when this node refuses, as the history in Redis cannot be used; 0 while it can.",
	}, func() float64 { return float64(h.since.Load()) / 1000 })
}

// fail has the store looked at soon, as a call to it has failed.
func (h *health) fail() {
	select {
	case h.failed <- struct{}{}:
	default:
	}
}

// start looks once, and then in the background until stop is called. Stop does not wait for a
// Redis that hangs.
func (h *health) start() (stop func()) {
	life, cancel := context.WithCancel(context.Background())
	h.check(life)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for h.wait(life) {
			h.check(life)
		}
	}()
	return func() { cancel(); <-done }
}

// wait waits until it is time for the next check, and reports whether there is one.
func (h *health) wait(life context.Context) bool {
	interval, failed := checkInterval, h.failed
	if h.since.Load() > 0 {
		interval, failed = retryInterval, nil
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-failed:
	case <-life.Done():
	}
	return life.Err() == nil
}

func (h *health) check(life context.Context) {
	ctx, cancel := context.WithTimeout(life, h.timeout)
	defer cancel()
	err := h.ready(ctx)
	if life.Err() != nil {
		return
	}
	if err == nil {
		h.usable.Set(1)
	} else {
		h.usable.Set(0)
	}
	h.noteOutage(err)
}

// noteOutage logs the begin and the end of an outage.
func (h *health) noteOutage(err error) {
	since := h.since.Load()
	switch {
	case err != nil && since == 0:
		h.since.Store(now())
		if h.refuses != nil {
			h.refuses.Warn("Redis is away: this node refuses until it is back", "cause", err)
		}
	case err == nil && since != 0:
		h.since.Store(0)
		if h.refuses != nil {
			h.refuses.Info("Redis is back", "lasted", (time.Duration(now()-since) * time.Millisecond).String())
		}
	}
}
