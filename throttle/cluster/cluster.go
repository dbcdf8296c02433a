// Package cluster keeps a limiter's records in Redis, where several processes share them: standalone,
// behind Sentinel or in a Cluster. It takes the program's own client:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	defer client.Close()
//	limiter, err := cluster.New(client, "myapp", throttle.DefaultPolicy())
//	...
//	verdict, err := limiter.Take(ctx, "alice@example.com")
//
// Each step is one script, by the server's clock. A refusal only reads. No step is repeated
// after an error: the caller can repeat a TakeID by a Policy with the same id, which is charged
// once. If Redis hangs, a Take that it runs after the caller has given up charges nothing.
//
// Redis 6.2 or later must run with maxmemory-policy noeviction. It acknowledges a write before
// its replicas have it, so a failover can forget the newest admissions.
package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// home is a throttle.Home over Redis.
type home struct {
	client  redis.UniversalClient
	prefix  string // of all keys: the caller's and the form of the states
	timeout time.Duration
	ahead   sync.Map // the address of a master to how many microseconds its clock is ahead of the time since began, at most
}

// New returns a limiter whose records are under a prefix, such as "myapp", in keys such as
// myapp:tiers:{alice@example.com}. It belongs to the client and needs no closing. Limiters with one
// prefix share records if their algorithms have the same Form, in all processes.
//
// The client must not read from replicas: leave options such as ReadOnly and RouteByLatency
// off. The algorithm must be one of package throttle.
func New(client redis.UniversalClient, prefix string, a throttle.Algorithm) (*throttle.Limiter, error) {
	timeout, err := timeoutOf(client)
	if err == nil && (prefix == "" || strings.ContainsAny(prefix, "{}")) {
		err = errors.New("the prefix of its keys must not be empty or contain braces")
	}
	if err == nil {
		_, _, err = scriptOf(a)
	}
	if err != nil {
		return nil, fmt.Errorf("a limiter in Redis: %w", err)
	}
	return throttle.New(a, &home{client: client, prefix: prefix + ":" + a.Form() + ":{", timeout: timeout}), nil
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
