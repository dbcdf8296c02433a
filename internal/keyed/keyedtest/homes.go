package keyedtest

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Table returns an empty table in memory, by the clock.
func Table(t *testing.T, c *Clock) *cache.Table {
	t.Helper()
	store := must.Get(cache.Open(cache.Options{Now: c.Now}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return store.Table("test")
}

// Local returns an empty Store of this process, by the clock.
func Local(t *testing.T, c *Clock) keyed.Store {
	t.Helper()
	return keyed.Local(Table(t, c))
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
