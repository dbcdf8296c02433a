package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	repeats "github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	codes "github.com/mailgate/mailgate/verify/cluster"
	"github.com/prometheus/client_golang/prometheus"
)

// openShared opens Redis.
func openShared(ctx context.Context, s *config.Config, first throttle.Policy, log *slog.Logger) (h history, store *redisstore.Store, err error) {
	redisstore.LogTo(log)
	store, err = redisstore.Open(redisstore.Options{
		URL: string(s.RedisURL), Prefix: string(s.RedisPrefix) + ":{}", Timeout: s.RedisTimeout, Confirm: s.RedisConfirm,
	})
	if err != nil {
		return history{}, nil, s.Complain("redis-url", err.Error())
	}
	if h, err = inRedis(store, first); err != nil {
		return history{}, nil, errors.Join(fmt.Errorf("opening the history: %w", err), store.Close())
	}
	prepare(ctx, store, log)
	return h, store, nil
}

// inRedis makes what keeps its records there.
func inRedis(store *redisstore.Store, first throttle.Policy) (history, error) {
	limiter, err := cluster.New(store, first)
	if err != nil {
		return history{}, err
	}
	meters, err := cluster.NewMeters(store)
	if err != nil {
		return history{}, err
	}
	answers, err := repeats.New(store, answerTerms)
	if err != nil {
		return history{}, err
	}
	handedOver, err := repeats.New(store, markTerms)
	if err != nil {
		return history{}, err
	}
	return history{
		mailbox: func(p throttle.Policy) outage.Survey { return limiter.Tiers("", p) },
		tiers:   func(name string, p throttle.Policy) throttle.Recorder { return limiter.Tiers(name, p) },
		meter:   meters.Limiter,
		codes:   codes.New(store),
		repeats: api.Repeats{Answers: answers, HandedOver: handedOver},
		remote:  true,
		metrics: redisGauges(store), patience: redisstore.Patience,
		ready: store.Ready,
		close: func(context.Context) error { return store.Close() },
	}, nil
}

// prepareTimeout bounds the look at Redis at start; it is only a look.
const prepareTimeout = 2 * time.Second

// prepare looks at Redis. One that does not answer yet is no reason not to start: /readyz
// says so until it does.
func prepare(ctx context.Context, store *redisstore.Store, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	warnings, err := store.Prepare(ctx)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	if err != nil {
		log.Warn("redis cannot be reached yet", "error", err)
	}
}

// redisGauges are what this node knows of Redis, and of how far it can be trusted with that.
func redisGauges(store *redisstore.Store) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mailgate_redis_masters_away",
			Help: "Masters of Redis that are known to be away at this moment, and are not asked.",
		}, func() float64 { return float64(store.Away()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mailgate_prober_lateness_seconds",
			Help: "How late the timers of this process were at most in the last 30 to 60 seconds. While it is above a quarter of the time that Redis has, and a second longer, silence of Redis is no outage.",
		}, func() float64 { return store.Lateness().Seconds() }),
	}
}
