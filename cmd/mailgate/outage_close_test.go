package main

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
)

// A stop whose time is up while Redis hangs has what is owed on the disk by then.
func TestTheOwnDiskIsClosedBeforeRedis(t *testing.T) {
	there := func(context.Context) error { return nil }
	watch, err := outage.NewWatch(outage.Options{
		Disk: cachetest.Open(t, cache.Memory), Shared: there, Away: func(error) bool { return true }, Now: clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	var closed []string
	closing := func(what string) history {
		return history{close: func(context.Context) error { closed = append(closed, what); return nil }}
	}
	both := join(watch, closing("redis"), new(redisstore.Store), diskHistory{history: closing("own disk")})
	if err := both.close(context.Background()); err != nil || !slices.Equal(closed, []string{"own disk", "redis"}) {
		t.Errorf("closed %q, %v", closed, err)
	}
}
