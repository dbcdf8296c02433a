package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// Whoever stops a process does not wait for a look at a Redis that hangs. The look that was cut
// short says nothing of Redis.
func TestAStopCutsALookShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		hangs := func(ctx context.Context) error {
			if looks++; looks == 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		registry := prometheus.NewRegistry()
		l := newLookout(registry, &settings.Settings{RedisTimeout: time.Hour}, hangs)
		l.begin()
		time.Sleep(lookEvery) // of the test's own clock
		synctest.Wait()
		began := time.Now()
		l.end()
		took := time.Since(began)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if usable := families[0].GetMetric()[0].GetGauge().GetValue(); looks != 2 || took > 0 || usable != 1 {
			t.Errorf("after %d looks it took %v, and the gauge says %v", looks, took, usable)
		}
	})
}
