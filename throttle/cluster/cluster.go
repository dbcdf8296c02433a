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

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// home is a throttle.Home over Redis.
type home struct {
	records *redisx.Records
	prefix  string // of all keys: the caller's and the form of the states
}

// New returns a limiter whose records are under a prefix, such as "myapp", in keys such as
// myapp:tiers:{alice@example.com}. It belongs to the client and needs no closing. Limiters with one
// prefix share records if their algorithms have the same Form, in all processes.
//
// The client must not read from replicas: leave options such as ReadOnly and RouteByLatency
// off. The algorithm must be one of package throttle.
func New(client redis.UniversalClient, prefix string, a throttle.Algorithm) (*throttle.Limiter, error) {
	err := check(client)
	if err == nil && (prefix == "" || strings.ContainsAny(prefix, "{}")) {
		err = errors.New("the prefix of its keys must not be empty or contain braces")
	}
	if err == nil {
		_, _, err = scriptOf(a)
	}
	if err != nil {
		return nil, fmt.Errorf("a limiter in Redis: %w", err)
	}
	return throttle.New(a, &home{redisx.NewRecords(client), prefix + ":" + a.Form() + ":{"}), nil
}

// check refuses a client whose answers may be of replicas.
func check(client redis.UniversalClient) error {
	switch client := client.(type) {
	case *redis.Client:
		return nil
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return errors.New("the client reads from replicas, which may lack the newest admissions")
		}
		return nil
	}
	return fmt.Errorf("the client is a %T, not a *redis.Client or *redis.ClusterClient", client)
}
