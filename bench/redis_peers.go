package main

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/throttle"
)

// A peer decides in Redis. Its answer is yes or no.
type peer interface {
	take(mailbox string) (allowed bool, err error)
}

// ourPeer is mailgate's limiter, asked as a peer is.
type ourPeer struct{ limiter throttle.Limiter }

func (p ourPeer) take(mailbox string) (bool, error) {
	v, err := p.limiter.Take(context.Background(), mailbox, throttle.NewID())
	return v.Allowed, err
}

// rates is redis_rate with one limit a tier. All of them are asked, as it takes that to
// say how every tier stands. Every caller has a connection.
type rates struct {
	client  *redis.Client
	limiter *redis_rate.Limiter
}

func newRates(addr string) rates {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: callers})
	return rates{client: client, limiter: redis_rate.NewLimiter(client)}
}

func (p rates) take(mailbox string) (bool, error) {
	allowed := true
	for _, tier := range throttle.DefaultPolicy().Tiers() {
		limit := redis_rate.Limit{Rate: tier.Limit, Burst: tier.Limit, Period: time.Duration(tier.Window) * time.Millisecond}
		result, err := p.limiter.Allow(context.Background(), mailbox+":"+tier.Name, limit)
		if err != nil {
			return false, err
		}
		allowed = allowed && result.Allowed > 0
	}
	return allowed, nil
}

// A piped script travels as ours do: many callers on few connections.
type piped struct {
	client *redis.Client
	pipe   *redis.AutoPipeliner
	sha    string
	args   func() []any
}

//go:embed plain.lua
var plainSource string

// newPlain is the script of the literature.
func newPlain(addr string) (*piped, error) {
	var tiers []any
	for _, tier := range throttle.DefaultPolicy().Tiers() {
		tiers = append([]any{tier.Limit, tier.Window}, tiers...)
	}
	return newPiped(addr, plainSource, func() []any {
		return append([]any{time.Now().UnixMilli(), throttle.NewID().String()}, tiers...)
	})
}

// newFloor does nothing: what is left is the way to Redis and back.
func newFloor(addr string) (*piped, error) {
	return newPiped(addr, "return 1", func() []any { return nil })
}

func newPiped(addr, source string, args func() []any) (*piped, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	sha, err := client.ScriptLoad(context.Background(), source).Result()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	pipe, err := client.AsyncAutoPipelineWithOptions(redis.DefaultAutoPipelineOptions())
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &piped{client: client, pipe: pipe, sha: sha, args: args}, nil
}

// take waits with a deadline, as ours does.
func (p *piped) take(mailbox string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := redis.NewCmd(ctx, append([]any{"evalsha", p.sha, 1, mailbox}, p.args()...)...)
	if err := p.pipe.Submit(ctx, cmd).WaitContext(ctx); err != nil {
		return false, err
	}
	answer, err := cmd.Int()
	return answer == 1, err
}

func (p *piped) close() error { return errors.Join(p.pipe.Close(), p.client.Close()) }
