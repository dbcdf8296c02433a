package main

import "github.com/prometheus/client_golang/prometheus"

// newRestingGauge is how many servers of Redis are left alone, as they do not answer.
func newRestingGauge(resting func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mailgate_redis_resting",
		Help: "Servers of Redis that do not answer and are left alone at this moment.",
	}, func() float64 { return float64(resting()) })
}
