package main

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/mailgate/mailgate/throttle"
)

const twoCountersName = "two counters"

// newClient is a client with a connection for every caller.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: callers})
}

func openUluleRedis(addr string, t throttle.Tier) (peer, func() error, error) {
	client := newClient(addr)
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return askUlule(limiter.New(store, rateOf(t))), client.Close, nil
}

// openRate is redis_rate with one limit.
func openRate(addr string, t throttle.Tier) (peer, func() error, error) {
	client := newClient(addr)
	l := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: t.Limit, Burst: t.Limit, Period: lengthOf(t)}
	ask := question(func(mailbox string) (bool, error) {
		result, err := l.Allow(context.Background(), mailbox, limit)
		if err != nil {
			return false, err
		}
		return result.Allowed > 0, nil
	})
	return ask, client.Close, nil
}

func openThrottledRedis(addr string, t throttle.Tier) (peer, func() error, error) {
	client := newClient(addr)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	ask, err := askThrottled(store, t)
	return ask, client.Close, err
}

//go:embed two_counters.lua
var twoCountersSource string

// openTwoCounters is the script of the literature, which travels as ours do.
func openTwoCounters(addr string, t throttle.Tier) (peer, func() error, error) {
	p, err := newPiped(addr, twoCountersSource, func() []any {
		return []any{time.Now().UnixMilli(), t.Limit, t.Window}
	})
	if err != nil {
		return nil, nil, err
	}
	return p, p.close, nil
}
