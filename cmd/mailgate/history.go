package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
)

// A history is where the sends of mailboxes are kept, and the limiter on it.
type history struct {
	limiter throttle.Historian
	ready   func(context.Context) error
	close   func() error
}

// openHistory opens Redis where its URL is set, else this machine's disk.
func openHistory(ctx context.Context, s *settings.Settings, log *slog.Logger) (history, error) {
	if s.RedisURL != "" {
		return openShared(ctx, s, log)
	}
	return openLocal(s, log)
}

func openLocal(s *settings.Settings, log *slog.Logger) (history, error) {
	disk, err := cache.Open(cache.DiskOptions{Dir: s.DataDir, Sync: s.Sync, Log: log})
	if err != nil {
		return history{}, s.Complain("data_dir", err.Error())
	}
	size := cache.Size{Entries: s.CacheMailboxes, Bytes: int64(s.CacheBytes)}
	limiter, err := local.New(disk, local.Options{Policy: s.Tiers, Size: size})
	if err != nil {
		return history{}, errors.Join(fmt.Errorf("opening the history: %w", err), disk.Close())
	}
	return history{
		limiter: limiter,
		ready:   limiter.Ready,
		close: func() error {
			limiter.Close()
			return disk.Close()
		},
	}, nil
}

// prepareTimeout bounds the look at Redis at start; it is only a look.
const prepareTimeout = 2 * time.Second

// openShared makes the limiter in Redis. A Redis that does not answer yet is no
// reason not to start: /readyz says so until it does.
func openShared(ctx context.Context, s *settings.Settings, log *slog.Logger) (history, error) {
	cluster.LogTo(log)
	limiter, err := cluster.New(cluster.Options{
		URL: string(s.RedisURL), Policy: s.Tiers, Timeout: s.RedisTimeout, Confirm: s.RedisConfirm,
	})
	if err != nil {
		return history{}, s.Complain("redis_url", err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	warnings, err := limiter.Prepare(ctx)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	if err != nil {
		log.Warn("redis cannot be reached yet", "error", err)
	}
	return history{limiter: limiter, ready: limiter.Ready, close: limiter.Close}, nil
}
