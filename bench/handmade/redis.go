package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// inRedis counts in fixed windows, as most do: an INCR and an EXPIRE for each tier, in one pipeline.
func inRedis(addr string) take {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return func(mailbox, code string) (limit string, wait time.Duration, err error) {
		ctx := context.Background()
		counts, waits := make([]*redis.IntCmd, len(tiers)), make([]*redis.DurationCmd, len(tiers))
		_, err = client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, t := range tiers {
				key := t.name + ":" + mailbox
				counts[i] = p.Incr(ctx, key)
				p.ExpireNX(ctx, key, t.window)
				waits[i] = p.PTTL(ctx, key)
			}
			return nil
		})
		if err != nil {
			return "", 0, err
		}
		for i, t := range tiers {
			if counts[i].Val() > int64(t.limit) && waits[i].Val() > wait {
				limit, wait = t.name, waits[i].Val()
			}
		}
		if limit == "" {
			err = client.Set(ctx, "code:"+mailbox, code, 10*time.Minute).Err()
		}
		return limit, wait, err
	}
}
