package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// master finds the server that owns the key, as far as is known.
func (c *redisClient) master(ctx context.Context, key string) (*redis.Client, error) {
	switch client := c.client.(type) {
	case *redis.Client:
		return client, nil
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, key)
	}
	return nil, fmt.Errorf("a client of type %T has no masters", c.client)
}

// masterAt finds the server that another has named. Moved says that the slot is there for good.
func (c *redisClient) masterAt(ctx context.Context, address string, moved bool, by *redis.Client) (*redis.Client, error) {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		return nil, errors.New("redis is a cluster; write the URL as redis+cluster://")
	}
	if moved {
		cluster.ReloadState(ctx)
	}
	found, err := c.masterNamed(ctx, address)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return c.newcomers.at(address, by)
	}
	c.newcomers.settled(address)
	return found, nil
}

// masterNamed finds the master of this address, nil if there is none any more. A Cluster
// is asked anew who its masters are.
func (c *redisClient) masterNamed(ctx context.Context, address string) (found *redis.Client, err error) {
	var mu sync.Mutex
	switch client := c.client.(type) {
	case *redis.Client:
		found = client
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			if master.Options().Addr == address {
				found = master
			}
			return nil
		})
	}
	return found, err
}

// eachMaster visits all masters at once and returns what went wrong at each, by
// address.
func (c *redisClient) eachMaster(ctx context.Context, visit func(context.Context, *redis.Client) error) (failed []error) {
	var mu sync.Mutex
	note := func(ctx context.Context, master *redis.Client) error {
		err := visit(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, fmt.Errorf("at %s: %w", master.Options().Addr, err))
		}
		return nil
	}
	var err error
	switch client := c.client.(type) {
	case *redis.Client:
		err = note(ctx, client)
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, note)
	}
	if err != nil {
		failed = append(failed, err)
	}
	return failed
}
