package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A history is where is kept what was sent. Its limiters cost nothing to make and need no
// closing: those of one name count together, as far as they count in one way.
type history struct {
	mailbox func(throttle.Policy) throttle.Historian
	tiers   func(name string, p throttle.Policy) throttle.Limiter
	meter   func(name string, m meter.Meter) throttle.Limiter
	remote  bool // a network away
	ready   func(context.Context) error
	close   func() error
}

// openHistory opens Redis where its URL is set, else this machine's disk. The policy is
// the one to begin with.
func openHistory(ctx context.Context, s *settings.Settings, first throttle.Policy, log *slog.Logger) (history, error) {
	if s.RedisURL != "" {
		return openShared(ctx, s, first, log)
	}
	return openLocal(s, first, log)
}

func openLocal(s *settings.Settings, first throttle.Policy, log *slog.Logger) (history, error) {
	disk, err := cache.Open(cache.DiskOptions{Dir: s.DataDir, Sync: s.Sync, Log: log})
	if err != nil {
		return history{}, s.Complain("data_dir", err.Error())
	}
	size := cache.Size{Entries: s.CacheMailboxes, Bytes: int64(s.CacheBytes)}
	limiter, err := local.New(disk, local.Options{Policy: first, Size: size})
	if err != nil {
		return history{}, errors.Join(fmt.Errorf("opening the history: %w", err), disk.Close())
	}
	meters, err := local.NewMeters(disk, local.MetersOptions{Size: size})
	if err != nil {
		limiter.Close()
		return history{}, errors.Join(fmt.Errorf("opening the history: %w", err), disk.Close())
	}
	return history{
		mailbox: func(p throttle.Policy) throttle.Historian { return limiter.Tiers("", p) },
		tiers:   func(name string, p throttle.Policy) throttle.Limiter { return limiter.Tiers(name, p) },
		meter:   meters.Limiter,
		ready:   limiter.Ready, // one disk keeps both
		close: func() error {
			limiter.Close()
			meters.Close()
			return disk.Close()
		},
	}, nil
}

// prepareTimeout bounds the look at Redis at start; it is only a look.
const prepareTimeout = 2 * time.Second

// openShared makes the limiter in Redis. A Redis that does not answer yet is no
// reason not to start: /readyz says so until it does.
func openShared(ctx context.Context, s *settings.Settings, first throttle.Policy, log *slog.Logger) (history, error) {
	redisstore.LogTo(log)
	store, err := redisstore.Open(redisstore.Options{
		URL: string(s.RedisURL), Timeout: s.RedisTimeout, Confirm: s.RedisConfirm,
	})
	if err != nil {
		return history{}, s.Complain("redis_url", err.Error())
	}
	limiter, err := cluster.New(store, first)
	if err != nil {
		return history{}, errors.Join(fmt.Errorf("opening the history: %w", err), store.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	warnings, err := store.Prepare(ctx)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	if err != nil {
		log.Warn("redis cannot be reached yet", "error", err)
	}
	return history{
		mailbox: func(p throttle.Policy) throttle.Historian { return limiter.Tiers("", p) },
		tiers:   func(name string, p throttle.Policy) throttle.Limiter { return limiter.Tiers(name, p) },
		meter:   limiter.Meter,
		remote:  true,
		ready:   store.Ready,
		close:   store.Close,
	}, nil
}
