package main

import (
	"context"
	"fmt"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
)

// libraryTiers are limits of which the first refuses a second send for longer than a
// comparison takes.
var libraryTiers = must(throttle.ParsePolicy("hour=1/1h,day=5/24h,week=10/168h"))

// limiter is a library's limiter, which takes once.
type limiter func(mailbox string) (allowed bool, err error)

func ours(l *throttle.Limiter) limiter {
	return func(mailbox string) (bool, error) {
		v, err := l.Take(context.Background(), mailbox)
		return v.Allowed, err
	}
}

// want takes once and returns an error if the answer is another.
func (l limiter) want(mailbox string, want bool) error {
	allowed, err := l(mailbox)
	if err == nil && allowed != want {
		err = fmt.Errorf("allowed is %t, want %t", allowed, want)
	}
	return err
}

// eachOf returns a limiter by several limits. The first that refuses ends the call.
func eachOf(client *redis.Client, name string, tiers []throttle.Tier, of func(*redis.Client, string, throttle.Tier) limiter) limiter {
	var limits []limiter
	for _, t := range tiers {
		limits = append(limits, of(client, name, t))
	}
	return func(mailbox string) (bool, error) {
		for _, l := range limits {
			if allowed, err := l(mailbox); err != nil || !allowed {
				return false, err
			}
		}
		return true, nil
	}
}

// clusterLibrary compares limiters in one Redis that all use one client: with three limits, and
// with one by the algorithm that is nearest to the peers'.
func clusterLibrary(b *bench) []row {
	client := redis.NewClient(&redis.Options{Addr: b.startRedis().addr, PoolSize: visitors})
	b.later(func() { client.Close() })
	tiers := libraryTiers.Tiers()
	bucket := must(throttle.NewTokenBucket(tiers[0], 1))
	return append(compareInRedis(client, "three limits in Redis", libraryTiers, tiers),
		compareInRedis(client, "a token bucket in Redis", bucket, tiers[:1])...)
}

// compareInRedis has each limiter refuse three of four calls. The fourth is the first for its
// mailbox.
func compareInRedis(client *redis.Client, name string, a throttle.Algorithm, tiers []throttle.Tier) []row {
	var sides []side
	for _, l := range []limiter{
		ours(must(cluster.New(client, name, a))),
		eachOf(client, name, tiers, redisRate),
		eachOf(client, name, tiers, throttledGCRA),
	} {
		parallel(visitors, 0, known, func(i int) error { return l.want(mailbox(int64(i)), true) })
		sides = append(sides, inCalls(visitors, 8_000, func(i int) error {
			if i%4 == 0 {
				return l.want(mailbox(int64(known+i)), true)
			}
			return l.want(mailbox(int64(i%known)), false)
		}))
	}
	samples := alternate(*rounds, sides...)
	return []row{
		compare(name, "µs", "redis_rate", elapsed, samples[0], samples[1], atMost(1)),
		compare(name, "µs", "throttled", elapsed, samples[0], samples[2], atMost(1)),
	}
}

func redisRate(client *redis.Client, name string, t throttle.Tier) limiter {
	l, limit := redis_rate.NewLimiter(client), redis_rate.Limit{Rate: t.Limit, Burst: t.Limit, Period: t.Window}
	return func(mailbox string) (bool, error) {
		result, err := l.Allow(context.Background(), name+t.Name+mailbox, limit)
		return err == nil && result.Allowed > 0, err
	}
}

func throttledGCRA(client *redis.Client, name string, t throttle.Tier) limiter {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(t.Limit, t.Window), MaxBurst: t.Limit - 1}
	l := must(throttled.NewGCRARateLimiterCtx(must(goredisstore.NewCtx(client, name+t.Name)), quota))
	return func(mailbox string) (bool, error) {
		refused, _, err := l.RateLimitCtx(context.Background(), mailbox, 1)
		return !refused, err
	}
}
