package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// A Cluster of which one master is away is ready, and not whole.
func TestWhole(t *testing.T) {
	t.Parallel()
	servers, ctx := redistest.Cluster(t), context.Background()
	for _, s := range append(servers.Masters, servers.Replicas...) { // a failover would make it whole again
		if err := s.Client().ConfigSet(ctx, "cluster-node-timeout", "60000").Err(); err != nil {
			t.Fatal(err)
		}
	}
	store, err := redisstore.Open(redisstore.Options{URL: servers.URL(), Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := errors.Join(store.Whole(ctx), store.Ready(ctx)); err != nil {
		t.Errorf("all are there: %v", err)
	}
	for _, s := range append(servers.Masters, servers.Replicas...) {
		if asked := s.Client().Info(ctx, "commandstats").Val(); asked == "" || strings.Contains(asked, "cmdstat_command") {
			t.Errorf("one was asked what commands there are, which could have waited for one that is away:\n%s", asked)
		}
	}
	servers.Masters[0].Pause()
	defer servers.Masters[0].Resume()
	if err := store.Whole(ctx); !errors.Is(err, redisstore.ErrUnavailable) {
		t.Errorf("one is away: %v", err)
	}
	if err := store.Ready(ctx); err != nil {
		t.Errorf("and the others are ready: %v", err)
	}
}
