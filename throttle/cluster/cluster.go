// Package cluster is the throttle.Limiter of several processes: its records are in Redis,
// standalone, behind Sentinel or in a Cluster. It takes the program's own client:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	defer client.Close()
//	limiter, err := cluster.New(client, "myapp", throttle.DefaultPolicy())
//	...
//	verdict, err := limiter.Take(ctx, "alice@example.com", throttle.NewID())
//
// Each step is one script, by the server's clock. A refusal only reads. No step is repeated
// after an error: the caller can repeat a Take by a Policy with the same id, which is charged
// once. If Redis hangs, a Take that it runs after the caller has given up charges nothing.
//
// Redis 6.2 or later must run with maxmemory-policy noeviction. It acknowledges a write before
// its replicas have it, so a failover can forget the newest admissions.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// Limiter is a throttle.Historian over Redis. It belongs to the client and needs no closing.
type Limiter struct {
	client    redis.UniversalClient
	algorithm throttle.Algorithm
	script    *redisx.Script
	params    []byte
	prefix    string // of all keys: the caller's and the form of the states
	timeout   time.Duration
	clocks    clocks
	now       func() int64 // the clock of a test, nil for the server's
}

// New returns the limiter that keeps the records of an algorithm under a prefix, such as
// "myapp", in keys such as myapp:tiers:{alice@example.com}. Limiters with one prefix share
// records if their algorithms have the same Form, in all processes. Give them the same windows.
//
// The client must not read from replicas: leave options such as ReadOnly and RouteByLatency
// off. The algorithm must be one of package throttle.
func New(client redis.UniversalClient, prefix string, a throttle.Algorithm) (*Limiter, error) {
	timeout, err := timeoutOf(client)
	if err != nil {
		return nil, fmt.Errorf("a limiter in Redis: %w", err)
	}
	if prefix == "" || strings.ContainsAny(prefix, "{}") {
		return nil, errors.New("a limiter in Redis: the prefix of its keys must not be empty or contain braces")
	}
	script, params, err := scriptOf(a)
	if err != nil {
		return nil, fmt.Errorf("a limiter in Redis: %w", err)
	}
	return &Limiter{
		client: client, algorithm: a, script: script, params: params,
		prefix: prefix + ":" + a.Form() + ":{", timeout: timeout, clocks: clocks{client: client},
	}, nil
}

// timeoutOf returns how long a call of the client waits for a reply.
func timeoutOf(client redis.UniversalClient) (time.Duration, error) {
	switch client := client.(type) {
	case *redis.Client:
		return client.Options().ReadTimeout, nil
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return 0, errors.New("the client reads from replicas, which may lack the newest admissions")
		}
		return client.Options().ReadTimeout, nil
	}
	return 0, fmt.Errorf("the client is a %T, not a *redis.Client or *redis.ClusterClient", client)
}

// Take implements throttle.Limiter.
func (l *Limiter) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, fmt.Errorf("take: %w", throttle.ErrID)
	}
	r, err := l.step(ctx, "take", key, throttle.Admission{ID: id})
	if err != nil {
		return throttle.Verdict{}, err
	}
	_, v := l.algorithm.Take(r.state, throttle.Admission{ID: id, At: r.now})
	if v.Allowed != r.did() {
		return throttle.Verdict{}, throttle.Unavailable("take", errReply)
	}
	return v, nil
}

// Peek implements throttle.Limiter.
func (l *Limiter) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	r, err := l.step(ctx, "peek", key)
	if err != nil {
		return throttle.Verdict{}, err
	}
	return l.algorithm.Peek(r.state, r.now), nil
}

// Release implements throttle.Limiter.
func (l *Limiter) Release(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	r, err := l.step(ctx, "release", key, a)
	return r.did(), err
}

// Reset implements throttle.Limiter.
func (l *Limiter) Reset(ctx context.Context, key string) (int, error) {
	r, err := l.step(ctx, "reset", key)
	if err != nil {
		return 0, err
	}
	return l.algorithm.Peek(r.state, r.now).Sent, nil
}

// Record implements throttle.Limiter. It records all of the admissions in one step, oldest
// first.
func (l *Limiter) Record(ctx context.Context, key string, all ...throttle.Admission) error {
	for _, a := range all {
		if !a.ID.Valid() {
			return fmt.Errorf("record: %w", throttle.ErrID)
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(a throttle.Admission) bool { return a.At < 0 })
	if len(all) == 0 {
		return check(ctx, "record", key)
	}
	slices.SortStableFunc(all, func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
	_, err := l.step(ctx, "record", key, all...)
	return err
}

// History implements throttle.Historian. A counter has no history: the error is
// errors.ErrUnsupported.
func (l *Limiter) History(ctx context.Context, key string) (throttle.History, error) {
	policy, err := l.policy()
	if err != nil {
		return nil, err
	}
	r, err := l.step(ctx, "peek", key)
	if err != nil {
		return nil, err
	}
	return policy.History(r.state, r.now), nil
}

func (l *Limiter) policy() (throttle.Policy, error) {
	policy, ok := l.algorithm.(throttle.Policy)
	if !ok {
		return policy, fmt.Errorf("history of a %s: %w", l.algorithm, errors.ErrUnsupported)
	}
	return policy, nil
}

func check(ctx context.Context, doing, key string) error {
	if err := throttle.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return throttle.Unavailable(doing, err)
	}
	return nil
}
