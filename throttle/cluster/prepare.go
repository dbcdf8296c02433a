package cluster

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Prepare loads the scripts on every master and looks for settings under which Redis
// would forget. It returns a sentence for each. The limiter works without: a server
// that does not know a script is sent it when it is needed.
func (l *Limiter) Prepare(ctx context.Context) (warnings []string, err error) {
	err = l.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		for _, s := range allScripts {
			if err := master.ScriptLoad(ctx, s.source).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, unavailable("loading the scripts", err)
	}
	policy, err := l.redis.client.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		return []string{"redis does not let its settings be read: make sure that maxmemory-policy is noeviction"}, nil
	}
	if name := policy["maxmemory-policy"]; name != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("redis runs with maxmemory-policy %s and may forget mailboxes: set noeviction", name))
	}
	return warnings, nil
}

// Ready reports whether Redis answers within the timeout.
func (l *Limiter) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err := l.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return master.Ping(ctx).Err()
	})
	if err != nil {
		return unavailable("asking redis", err)
	}
	return nil
}

func (c *redisClient) eachMaster(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	switch client := c.client.(type) {
	case *redis.Client:
		return do(ctx, client)
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, do)
	}
	return fmt.Errorf("a client of type %T has no masters", c.client)
}
