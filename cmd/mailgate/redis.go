package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/standby"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// openRedis opens Redis and warns of settings under which it would forget what it is told. One
// that does not answer yet is no reason not to start: /readyz says so until it does.
func openRedis(ctx context.Context, c *config.Config, log *slog.Logger) (redis.UniversalClient, error) {
	redisx.LogTo(log)
	client, err := redisx.Open(redisx.Options{URL: string(c.RedisURL), Timeout: c.RedisTimeout, Confirm: c.RedisConfirm, Log: log})
	if err != nil {
		return nil, c.Complain("redis-url", err.Error())
	}
	const lookTimeout = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	warnings, err := redisx.Warnings(ctx, client, c.RedisConfirm)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	if err != nil {
		log.Warn("Redis cannot be reached yet", "error", err)
	}
	return client, nil
}

// tryWrite is confirmed by replicas as the scripts of sends are.
var tryWrite = redisx.NewScript("return redis.call('SET', KEYS[1], '1', 'PX', 1000)", func(any) bool { return true })

// redisReady has every master take a write.
func (s *store) redisReady(ctx context.Context) error {
	cluster, ok := s.redis.(*redis.ClusterClient)
	if !ok {
		_, err := tryWrite.Run(ctx, s.redis, s.prefix+":ready")
		return err
	}
	masters, err := redisx.Masters(ctx, cluster)
	if err != nil {
		return err
	}
	const mostKeys = 1000 // among so many each master that has slots has some
	asked := map[string]bool{}
	for i := 0; i < mostKeys && len(asked) < len(masters); i++ {
		key := fmt.Sprintf("%s:ready:%d", s.prefix, i)
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return err
		}
		if address := node.Options().Addr; !asked[address] {
			if _, err := tryWrite.Run(ctx, s.redis, key); err != nil {
				return err
			}
			asked[address] = true
		}
	}
	return nil
}

// failureHook is called when a call to Redis has failed.
type failureHook func()

// DialHook implements redis.Hook.
func (failureHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (failed failureHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && err != redis.Nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			failed()
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (failureHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// standbyGauges are what a node has decided without Redis, read when they are asked for.
type standbyGauges struct {
	state                                                            func() standby.State
	degraded, since, journal, admitted, told, unrecorded, late, away *prometheus.Desc
}

func newStandbyGauges(state func() standby.State) *standbyGauges {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &standbyGauges{
		state:      state,
		degraded:   desc("mailgate_store_degraded", "1 while this node decides without Redis, or has not yet told it all that it admitted meanwhile."),
		since:      desc("mailgate_store_degraded_since_timestamp_seconds", "Since when; 0 while it does not."),
		journal:    desc("mailgate_store_journal", "Operations of this node that Redis has not been told of."),
		admitted:   desc("mailgate_store_degraded_admissions_total", "What this node admitted without Redis: a send or an action counts once for each rule that it met, a guess once."),
		told:       desc("mailgate_store_told_total", "What this node admitted without Redis and has then told it."),
		unrecorded: desc("mailgate_store_unrecorded_total", "Admissions by Redis that this node could not record on its own disk, or not in time."),
		away:       desc("mailgate_redis_masters_away", "Masters of Redis that are away and are not asked."),
		late:       desc("mailgate_prober_lateness_seconds", "How late the timers of this process were at most in the last 30 to 60 seconds. While it is above a quarter of the time that Redis has, and a second longer, silence of Redis is no outage."),
	}
}

// Describe implements prometheus.Collector.
func (g *standbyGauges) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, to) }

// Collect implements prometheus.Collector.
func (g *standbyGauges) Collect(to chan<- prometheus.Metric) {
	s := g.state()
	degraded := 0.0
	if s.Degraded {
		degraded = 1
	}
	metric := func(of *prometheus.Desc, kind prometheus.ValueType, value float64) {
		to <- prometheus.MustNewConstMetric(of, kind, value)
	}
	metric(g.degraded, prometheus.GaugeValue, degraded)
	metric(g.since, prometheus.GaugeValue, float64(s.Since)/1000)
	metric(g.journal, prometheus.GaugeValue, float64(s.Journal))
	metric(g.admitted, prometheus.CounterValue, float64(s.Admitted))
	metric(g.told, prometheus.CounterValue, float64(s.Told))
	metric(g.unrecorded, prometheus.CounterValue, float64(s.Unrecorded))
	metric(g.away, prometheus.GaugeValue, float64(s.Away))
	metric(g.late, prometheus.GaugeValue, s.Lateness.Seconds())
}
