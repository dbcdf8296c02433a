package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/standby"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// openRedis opens Redis and warns of settings under which it would lose records. One that does not
// answer yet is no reason not to start: /readyz says so until it does. One with records of another
// format is.
func openRedis(ctx context.Context, c *config.Config, log *slog.Logger) (redis.UniversalClient, *prober.Prober, error) {
	redisx.LogTo(log)
	client, err := redisx.Open(redisx.Options{
		URL: string(c.RedisURL), Timeout: c.RedisTimeout, Confirm: c.RedisConfirm, Format: recordFormat, Prefix: c.RedisPrefix,
	})
	if err != nil {
		return nil, nil, c.Complain("redis-url", err.Error())
	}
	masters := prober.New(client, c.RedisPrefix, c.RedisTimeout)
	const lookTimeout = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var warnings []string
	if err = client.Ping(ctx).Err(); err == nil {
		warnings, err = redisx.Warnings(ctx, client, c.RedisConfirm)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	if errors.Is(err, redisx.ErrFormat) {
		masters.Close()
		return nil, nil, errors.Join(c.Complain("redis-prefix", err.Error()+
			"; run the version of mailgate that wrote them, or set another prefix and lose every send on record"), client.Close())
	}
	if err != nil {
		log.Warn("Redis cannot be reached yet", "error", err)
	}
	return client, masters, nil
}

// metrics returns the metrics of the store, and with Redis those of decisions without it.
func (s *store) metrics() []prometheus.Collector {
	all := []prometheus.Collector{s.usable}
	if s.onDisk {
		all = append(all, diskMetrics(s.own)...)
	}
	if s.redis != nil {
		all = append(all, decisions("memory", s.memory.Refusals), decisions("store", s.memory.Asked))
	}
	if s.standby == nil {
		return all
	}
	gauge := func(name, help string, value func(standby.State) float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(s.standby.State()) }))
	}
	count := func(name, help string, value func(standby.State) uint64) {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(s.standby.State())) }))
	}
	gauge("mailgate_store_degraded", "1 while this node decides without Redis, or its journal is not synced yet.",
		func(s standby.State) float64 { return oneIf(s.Since > 0) })
	gauge("mailgate_store_journal", "Operations of this node that are not synced to Redis yet.",
		func(s standby.State) float64 { return float64(s.Journal) })
	gauge("mailgate_redis_masters_away", "Redis masters that are away.",
		func(s standby.State) float64 { return float64(s.Away) })
	count("mailgate_store_degraded_admissions_total", "Admissions of this node without Redis: a send or an action counts once for each rule, a guess once.",
		func(s standby.State) uint64 { return s.Admitted })
	count("mailgate_prober_late_total", "Times this process was late by more than a quarter of redis-timeout. For a second after that, a silent Redis is not considered away.",
		func(s standby.State) uint64 { return s.Late })
	count("mailgate_store_unrecorded_total", "Admissions by Redis that this node could not record on its own disk, or not in time.",
		func(s standby.State) uint64 { return s.Unrecorded })
	return all
}

// decisions is a metric of those that come from memory, or from the store.
func decisions(from string, count func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "mailgate_decisions_total", ConstLabels: prometheus.Labels{"from": from},
		Help: "Decisions about limits: refusals from this node's memory, and answers of Redis.",
	}, func() float64 { return float64(count()) })
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
