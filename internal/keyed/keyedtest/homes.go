package keyedtest

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Table returns an empty table in memory, by the clock.
func Table(t *testing.T, c *Clock) *cache.Table {
	t.Helper()
	store, err := cache.Open(cache.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store.Table("test")
}

// Local returns an empty Store of this process, by the clock.
func Local(t *testing.T, c *Clock) keyed.Store {
	t.Helper()
	return keyed.Local(Table(t, c), c.Now)
}

// EachHome runs a test of what is built on a Store, in this process and on a Redis server.
// Each open is the view that another process has of one Store, which is empty at the start.
func EachHome(t *testing.T, test func(t *testing.T, c *Clock, open func() keyed.Store)) {
	t.Run("Local", func(t *testing.T) {
		var c Clock
		store := Local(t, &c)
		test(t, &c, func() keyed.Store { return store })
	})
	t.Run("Redis", func(t *testing.T) {
		var c Clock
		server := redistest.Alone(t)
		test(t, &c, func() keyed.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr})
			t.Cleanup(func() { _ = client.Close() })
			return moved{keyed.Redis(client, "mailgate:test"), &c}
		})
	})
}

// Outage is a node's view of shared records that can be away.
type Outage struct {
	Shared, Own keyed.Store
	Away        atomic.Bool
}

// Update implements keyed.Store.
func (o *Outage) Update(ctx context.Context, key string, step keyed.Step) (alone bool, err error) {
	if !o.Away.Load() {
		return o.Shared.Update(ctx, key, step)
	}
	_, err = o.Own.Update(ctx, key, step)
	return true, err
}

// Merge is the Merge of a package of records.
type Merge = func(shared, own []byte, now int64) (next []byte, expires int64)

// Copy merges the record of a key from one store into another.
func Copy(t *testing.T, merge Merge, key string, from, to keyed.Store) {
	t.Helper()
	var own []byte
	_, err := from.Update(t.Context(), key, func(old []byte, now int64) ([]byte, int64) {
		own = bytes.Clone(old)
		return merge(old, nil, now) // the same again
	})
	if err == nil {
		_, err = to.Update(t.Context(), key, func(old []byte, now int64) ([]byte, int64) { return merge(old, own, now) })
	}
	if err != nil || own == nil {
		t.Fatalf("copied %d bytes, %v", len(own), err)
	}
}
