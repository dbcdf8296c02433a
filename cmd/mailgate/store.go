package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/standby"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// recordFormat is the version of what all records hold and of how their keys are made, on disk and in
// Redis. A change counts it up: programs of two formats do
// not use the same records.
const recordFormat = 6

// A store is where all records are: on this machine, in Redis, or in Redis with the node's own
// beside them for an outage.
type store struct {
	own     *cache.Store          // nil beside Redis if sends are refused in an outage
	onDisk  bool                  // own is a data directory
	redis   redis.UniversalClient // nil on one machine
	prober  *prober.Prober        // of redis
	memory  *cluster.Memory       // of refusals by Redis; nil on one machine
	standby *standby.Standby      // nil unless this node continues alone in an outage
	prefix  string                // of all keys in Redis
	log     *slog.Logger

	timeout time.Duration // of a check
	usable  prometheus.Gauge
	failed  atomic.Bool // the last check did
}

// openStore opens Redis if its URL is set, and the data directory if it is used.
func openStore(ctx context.Context, c *config.Config, log *slog.Logger) (s *store, err error) {
	s = &store{prefix: c.RedisPrefix, log: log, timeout: storeTimeout(c)}
	clock, ownNow := standby.NewClock(), now
	if c.Standby() {
		ownNow = clock.Now
	}
	own, refusals := int64(c.CacheBytes), int64(0) // the memory of the records on disk, and of the refusals by Redis
	switch {
	case !c.UsesDataDir():
		own, refusals = 0, own
	case c.RedisURL != "":
		own, refusals = own-own/2, own/2
	}
	if c.UsesDataDir() {
		if s.own, err = openDisk(c, own, ownNow, log); err != nil {
			return nil, err
		}
		s.onDisk = c.DataDir != config.Memory
	}
	if c.RedisURL != "" {
		if s.redis, s.prober, err = openRedis(ctx, c, log); err != nil {
			return nil, errors.Join(err, s.close(time.Now()))
		}
		s.memory = cluster.NewMemory(refusals)
	}
	if c.Standby() {
		s.standby, err = standby.New(standby.Options{Prober: s.prober, Store: s.own, Clock: clock, Log: log})
		if err != nil {
			return nil, errors.Join(c.Complain("data-dir", err.Error()), s.close(time.Now()))
		}
	}
	return s, nil
}

// limiter counts by an algorithm. Limiters of one name share their records if their algorithms
// have one form. Refusals by Redis are remembered.
func (s *store) limiter(name string, a throttle.Algorithm) (*throttle.Limiter, error) {
	if s.redis == nil {
		return local.New(s.own.Table(name), a), nil
	}
	shared, err := cluster.New(s.redis, s.prefix+":"+name, a)
	if err != nil {
		return nil, fmt.Errorf("counting %s: %w", name, err)
	}
	if s.standby != nil {
		shared = s.standby.Limiter(name+"."+a.Form(), shared, local.New(s.own.Table(name), a))
	}
	return s.memory.Limiter(shared), nil
}

// records keeps values that change by one step at a time. Merge joins what this node wrote alone with what Redis has;
// without one they cannot be used while Redis is away. With mirror, the node's own records also have what Redis decided.
func (s *store) records(name string, merge standby.Merge, mirror bool) keyed.Store {
	if s.redis == nil {
		return keyed.Local(s.own.Table(name))
	}
	shared := keyed.Redis(s.redis, s.prefix+":"+name)
	if s.standby == nil || merge == nil {
		return shared
	}
	return s.standby.Store(name, shared, keyed.Local(s.own.Table(name)), merge, mirror)
}

const checkInterval = 10 * time.Second

// check asks regularly whether the store can be used, so that an outage shows before a request
// meets it, and writes to Redis what an outage has left.
func (s *store) check(life context.Context) {
	if s.standby != nil {
		s.standby.Start()
	}
	again := time.NewTicker(checkInterval)
	defer again.Stop()
	for life.Err() == nil {
		ctx, cancel := context.WithTimeout(life, s.timeout)
		_ = s.ready(ctx) // it is logged, and in the metrics
		cancel()
		select {
		case <-again.C:
		case <-life.Done():
		}
	}
}

// ready returns an error if nothing can be decided now.
func (s *store) ready(ctx context.Context) (err error) {
	switch {
	case s.standby != nil:
		err = s.standby.Ready(ctx)
	case s.redis != nil:
		err = s.prober.TryAll(ctx)
	default:
		err = s.own.Ready(ctx)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return err // which is the caller's
	}
	s.usable.Set(oneIf(err == nil))
	failed, logs := s.failed.Swap(err != nil), s.redis != nil && s.standby == nil // others log it themselves
	switch {
	case logs && !failed && err != nil:
		s.log.Warn("Redis is away: this node refuses until it is back", "cause", err)
	case logs && failed && err == nil:
		s.log.Info("Redis is back")
	}
	return err
}

// degraded returns since when this node decides without Redis, or 0, and how many of its operations Redis lacks.
func (s *store) degraded() (since int64, lacks int) {
	if s.standby == nil {
		return 0, 0
	}
	state := s.standby.State()
	return state.Since, state.Journal
}

// close ends the store. In an outage it tries to sync the journal until end; the rest
// stays on disk.
func (s *store) close(end time.Time) (err error) {
	if s.standby != nil {
		ctx, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		s.standby.Close(ctx)
	}
	if s.own != nil {
		err = s.own.Close() // before Redis, which may hang
	}
	if s.redis != nil {
		s.prober.Close()
		err = errors.Join(err, s.redis.Close())
	}
	return err
}

// storeTimeout returns how long to wait for an answer of the store. It is longer than the store
// itself waits for Redis and then for a disk that hangs.
func storeTimeout(c *config.Config) time.Duration {
	return c.RedisTimeout + c.RedisTimeout/4 + 2*time.Second
}
