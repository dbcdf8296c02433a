package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

// A stop does not wait for a check of a Redis that hangs, and a check that was cut short does
// not count as an outage.
func TestCheckStore_StopWhileRedisHangs_EndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		p := &program{config: &config.Config{RedisTimeout: time.Hour}, usable: prometheus.NewGauge(prometheus.GaugeOpts{Name: "usable"})}
		p.history.ready = func(ctx context.Context) error {
			if checks++; checks == 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		stop := p.checkStore()
		time.Sleep(checkEvery) // of the test's own clock
		synctest.Wait()
		began := time.Now()
		stop()
		took := time.Since(began)
		registry := prometheus.NewRegistry()
		registry.MustRegister(p.usable)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if usable := families[0].GetMetric()[0].GetGauge().GetValue(); checks != 2 || took > 0 || usable != 1 {
			t.Errorf("after %d checks the stop took %v, and the gauge is %v", checks, took, usable)
		}
	})
}
