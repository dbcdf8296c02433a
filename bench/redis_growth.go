package main

import (
	"context"
	"errors"
	"fmt"
)

// redisGrowth compares a denial among a thousand mailboxes with one among a million,
// each in a Redis of its own and asked about at random.
func redisGrowth() (rows []row, err error) {
	small, large := fmt.Sprintf("%d mailboxes", few), fmt.Sprintf("%d mailboxes", many)
	err = withGrown(few, func(askFew func() (cost, error)) error {
		return withGrown(many, func(askMany func() (cost, error)) error {
			read, err := interleave(7, side{large, askMany}, side{small, askFew})
			if err != nil {
				return err
			}
			rows = append(rows,
				read.compare("redis: a denial among "+large, onTheClock, large, small, 1.5),
				read.compare("redis: a denial among "+large, insideRedis, large, small, 1.5))
			return nil
		})
	})
	return rows, err
}

// withGrown starts a server with so many mailboxes, each admitted once.
func withGrown(n int, use func(ask func() (cost, error)) error) error {
	return withRedis(func(s *redisServer) error {
		// An hour, so that filling may take its time.
		limiter, err := openCluster(s.addr, mustPolicy("hour=1/1h"), nil)
		if err != nil {
			return err
		}
		all := mailboxes(n)
		_, err = spread(callers, n, func(i int) error { return admitted(limiter, all[i]) })
		if err != nil {
			return errors.Join(err, limiter.Close())
		}
		order := shuffled(all)
		next := 0
		return errors.Join(use(func() (cost, error) {
			first := next
			next += batch
			return s.account(batch, func() (float64, error) {
				return spread(callers, batch, func(i int) error { return denied(limiter, order[(first+i)%n]) })
			})
		}), limiter.Close())
	})
}

// redisEntry measures what a mailbox with ten sends takes in Redis, key included; the plain
// script's has the caller's clock for a score and no prefix.
func redisEntry() (rows []row, err error) {
	err = withField(func(f *field) error {
		if err := f.fill(mailboxes(1), 10); err != nil {
			return err
		}
		ctx := context.Background()
		keys, err := f.server.client.Keys(ctx, "mailgate:*").Result()
		if err != nil || len(keys) != 1 {
			return errors.Join(err, fmt.Errorf("%d keys of ours, want 1", len(keys)))
		}
		bytes, err := f.server.client.MemoryUsage(ctx, keys[0]).Result()
		if err != nil {
			return err
		}
		plain, err := f.server.client.MemoryUsage(ctx, mailbox("user", 0)).Result()
		rows = append(rows,
			figure("redis: a mailbox of ten sends, 20 characters", "bytes", float64(bytes)).atMost(320),
			figure("  … of the plain script", "bytes", float64(plain)))
		return err
	})
	return rows, err
}
