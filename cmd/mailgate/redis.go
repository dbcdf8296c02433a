package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redisx"
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
