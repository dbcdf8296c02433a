package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// Every sorted set with the prefix is met once, on whatever master it is, and no other key.
func TestSortedSets(t *testing.T) {
	ctx := context.Background()
	alone, cluster := redistest.Alone(t), redistest.Cluster(t)
	for url, client := range map[string]redis.Cmdable{alone.URL(): alone.Client(), cluster.URL(): cluster.Client()} {
		store := open(t, redisstore.Options{URL: url, Timeout: patient})
		var want []string
		for i := range 1500 {
			key := fmt.Sprintf("a[b]*?\\:{}%d", i)
			client.ZAdd(ctx, key, redis.Z{Member: "x"})
			want = append(want, key)
		}
		client.ZAdd(ctx, "ab:{}1", redis.Z{Member: "x"})
		client.Set(ctx, "a[b]*?\\:{}text", "x", 0)
		var got []string
		if err := store.SortedSets(ctx, "a[b]*?\\:{}", func(keys []string) bool { got = append(got, keys...); return true }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: met %d keys, want %d", url, len(got), len(want))
		}
		calls := 0
		if err := store.SortedSets(ctx, "a", func([]string) bool { calls++; return false }); err != nil || calls != 1 {
			t.Errorf("%s: %d calls, %v", url, calls, err)
		}
		ended, end := context.WithCancel(ctx)
		end()
		if err := store.SortedSets(ended, "a", nil); !errors.Is(err, redisstore.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: its time was over: %v", url, err)
		}
	}
}
