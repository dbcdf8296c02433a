package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// registerMetrics registers the figures of the process, of its files and of its records.
func (p *program) registerMetrics() {
	p.metrics.MustRegister(p.output.dropped, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	with, s := promauto.With(p.metrics), p.store
	gauge := func(name, help string, value func() float64) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	p.reloads.successful = with.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_reload_last_successful", Help: "0 if the files read last are invalid: the next start would fail."})
	p.reloads.info = with.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mailgate_rules_info", Help: "1, with the digest of the rules in force: nodes with one digest have the same rules."}, []string{"digest"})
	p.reloads.inForce(p.content.rules)
	s.usable = with.NewGauge(prometheus.GaugeOpts{Name: "mailgate_store_ready", Help: "1 while the records can be used; checked every ten seconds."})
	if s.onDisk {
		gauge("mailgate_data_dir_replaced", "1 while the data directory is removed, moved or replaced.",
			func() float64 { return oneIf(s.own.State().Replaced) })
		gauge("mailgate_data_dir_free_bytes", "Free space of the file system of the data directory.",
			func() float64 { return float64(s.own.State().Free) })
	}
	if s.redis == nil {
		return
	}
	with.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_secret_info", Help: "1, with a digest of the secret: nodes that share records need the same.",
		ConstLabels: prometheus.Labels{"digest": p.digest}}).Set(1)
	for from, count := range map[string]func() uint64{"memory": s.memory.Refusals, "store": s.memory.Asked} {
		with.NewCounterFunc(prometheus.CounterOpts{
			Name: "mailgate_decisions_total", Help: "Decisions about limits: refusals from this node's memory, and answers of Redis.",
			ConstLabels: prometheus.Labels{"from": from}}, func() float64 { return float64(count()) })
	}
	if s.standby == nil {
		return
	}
	count := func(name, help string, value func() uint64) {
		with.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	gauge("mailgate_store_degraded", "1 while this node decides without Redis, or its journal is not synced yet.",
		func() float64 { return oneIf(s.standby.State().Since > 0) })
	gauge("mailgate_store_journal", "Operations of this node that are not synced to Redis yet.",
		func() float64 { return float64(s.standby.State().Journal) })
	gauge("mailgate_redis_masters_away", "Redis masters that are away.",
		func() float64 { return float64(s.standby.State().Away) })
	count("mailgate_store_degraded_admissions_total", "Admissions of this node without Redis: a send or an action counts once for each rule, a guess once.",
		func() uint64 { return s.standby.State().Admitted })
	count("mailgate_prober_late_total", "Times this process was late by more than a quarter of redis-timeout. For a second after that, a silent Redis is not considered away.",
		func() uint64 { return s.standby.State().Late })
	count("mailgate_store_unrecorded_total", "Admissions by Redis that this node could not record on its own disk, or not in time.",
		func() uint64 { return s.standby.State().Unrecorded })
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
