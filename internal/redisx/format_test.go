package redisx_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/redis/go-redis/v9"
)

// Programs of two formats do not share records, also where Redis was away when one started.
func TestFormat_Another_RedisIsNotAsked(t *testing.T) {
	server := redistest.Durable(t)
	with := func(format int, prefix string) redis.UniversalClient {
		return open(t, redisx.Options{URL: server.URL(), Timeout: patient, Format: format, Prefix: prefix})
	}
	first, next := with(1, "mailgate"), with(2, "mailgate")
	answers(t, first, "key")
	server.Kill()
	if _, err := run(next, "key"); err == nil || errors.Is(err, redisx.ErrFormat) {
		t.Errorf("without Redis: %v", err)
	}
	server.Restart()
	for range 2 {
		if _, err := run(next, "key"); !errors.Is(err, redisx.ErrFormat) || !redisx.Undone(err) {
			t.Errorf("another format: %v", err)
		}
		if _, err := next.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Get(ctx, "key").Err() }); !errors.Is(err, redisx.ErrFormat) {
			t.Errorf("a pipeline, another format: %v", err)
		}
	}
	for name, client := range map[string]redis.UniversalClient{"running": first, "new": with(1, "mailgate"), "another prefix": with(2, "staging")} {
		if _, err := run(client, "key"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Redis whose records are replaced by those of another format is not asked any more, also on a connection that lasts.
func TestFormat_RecordsReplaced_RedisIsNotAsked(t *testing.T) {
	server := redistest.Alone(t)
	with := func(format int) redis.UniversalClient {
		return open(t, redisx.Options{URL: server.URL(), Timeout: patient, Format: format, Prefix: "mailgate"})
	}
	running := with(1)
	answers(t, running, "key")
	must.OK(t, server.Client().FlushAll(ctx).Err())
	answers(t, with(2), "key")
	servertest.Eventually(t, "the other format to be noticed", func() bool {
		_, err := run(running, "key")
		return errors.Is(err, redisx.ErrFormat)
	})
	must.OK(t, server.Client().FlushAll(ctx).Err())
	answers(t, running, "key")
}

// When the check of the format is due, one of many callers makes it. A connection for each of them would be kept.
func TestFormat_ManyCallers_OneConnection(t *testing.T) {
	server := redistest.Alone(t)
	client := open(t, redisx.Options{URL: server.URL(), Timeout: patient, Format: 3, Prefix: "mailgate"})
	var callers sync.WaitGroup
	begin := make(chan struct{})
	for i := range 64 {
		callers.Go(func() {
			<-begin
			if _, err := run(client, fmt.Sprint("key", i)); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	callers.Wait()
	if n := client.PoolStats().TotalConns; n != 1 {
		t.Errorf("the format was read on %d connections", n)
	}
}
