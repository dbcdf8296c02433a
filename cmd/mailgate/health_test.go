package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A stop does not wait for a check of a Redis that hangs, and a check that was cut short does
// not count as an outage.
func TestHealth_StopWhileRedisHangs_EndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		h := newHealth(func(ctx context.Context) error {
			if checks++; checks == 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, time.Hour)
		stop := h.start()
		time.Sleep(checkInterval) // of the test's own clock
		synctest.Wait()
		began := time.Now()
		stop()
		took := time.Since(began)
		registry := prometheus.NewRegistry()
		registry.MustRegister(h.usable)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if usable := families[0].GetMetric()[0].GetGauge().GetValue(); checks != 2 || took > 0 || usable != 1 || h.since.Load() != 0 {
			t.Errorf("after %d checks the stop took %v, and the gauge is %v", checks, took, usable)
		}
	})
}
