package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// runConfirmed is the runner that makes a yes wait for replicas. WAIT speaks only for
// the writes of its own connection, so both travel on one that nobody shares.
func (c *redisClient) runConfirmed(replicas int) runner {
	return func(ctx context.Context, s *script, key string, args []any) (string, error) {
		node, err := c.master(ctx, key)
		if err != nil {
			return "", err
		}
		conn := node.Conn()
		defer conn.Close()
		reply, err := runOn(ctx, conn, s, key, args)
		if err != nil || reply == "" {
			return reply, err
		}
		if _, answer := cutAnswer(reply); answer == denied {
			return reply, nil
		}
		return reply, waitFor(ctx, conn, replicas)
	}
}

func runOn(ctx context.Context, conn *redis.Conn, s *script, key string, args []any) (string, error) {
	cmd := s.byName(ctx, key, args)
	err := conn.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.whole(ctx, key, args)
		err = conn.Process(ctx, cmd)
	}
	if err != nil {
		return "", err
	}
	return cmd.Val(), nil
}

// waitFor asks for as long as the deadline leaves, less the way back.
func waitFor(ctx context.Context, conn *redis.Conn, replicas int) error {
	const wayBack = 10 * time.Millisecond
	deadline, _ := ctx.Deadline()
	left := max(time.Millisecond, time.Until(deadline)-wayBack)
	confirmed, err := conn.Wait(ctx, replicas, left).Result()
	if err != nil {
		return fmt.Errorf("waiting for replicas: %w", err)
	}
	if confirmed < int64(replicas) {
		return fmt.Errorf("%d of %d replicas have confirmed the admission in time", confirmed, replicas)
	}
	return nil
}

// master finds the server that owns the key now.
func (c *redisClient) master(ctx context.Context, key string) (*redis.Client, error) {
	switch client := c.client.(type) {
	case *redis.Client:
		return client, nil
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, key)
	}
	return nil, fmt.Errorf("a client of type %T has no masters", c.client)
}
