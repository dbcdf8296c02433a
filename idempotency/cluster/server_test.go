package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

const prefix = "mailgate:idempotency.requests:{}"

func keyOf(key string) string { return prefix + nameOf(key).Text() }

func TestTermsThatWillNotDo(t *testing.T) {
	store, err := redisstore.Open(redisstore.Options{URL: "redis://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if _, err := cluster.New(store, idempotency.Terms{Lease: 1}); !errors.Is(err, idempotency.ErrTerms) {
		t.Error(err)
	}
}

// By the server's clock every key goes a second after its record has ended.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	keeper := open(t, defaults, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	kept := func(doing string, most time.Duration) {
		t.Helper()
		keys := server.Client().Keys(ctx, "*").Val()
		if len(keys) != 1 || keys[0] != keyOf("key") {
			t.Fatalf("%s: keys %q", doing, keys)
		}
		if left := server.Client().PTTL(ctx, keys[0]).Val(); left <= most-patient || left > most+time.Second {
			t.Errorf("%s: kept for %v, want %v", doing, left, most)
		}
	}
	lease := expect(t, keeper, "key", idempotency.Started).Lease
	kept("begin", time.Minute)
	keeper.Abandon(ctx, lease)
	kept("abandon", time.Minute)
	lease = expect(t, keeper, "key", idempotency.Started).Lease
	keeper.Finish(ctx, lease, sent)
	kept("finish", 24*time.Hour)
	keeper.Finish(ctx, lease, sent)
	kept("finish again", 24*time.Hour)
}

func TestForeignValueIsAnError(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	keeper := open(t, defaults, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	lease := idempotency.Lease{Name: nameOf("foreign"), Body: request, Token: idempotency.NewToken()}
	for name, write := range map[string][]any{
		"another type":   {"ZADD", keyOf("foreign"), "1", "x"},
		"a short string": {"SET", keyOf("foreign"), "1"},
		"a cut record":   {"SET", keyOf("foreign"), strings.Repeat("\x00", 53)},
	} {
		server.Client().Del(ctx, keyOf("foreign"))
		if err := server.Client().Do(ctx, write...).Err(); err != nil {
			t.Fatal(err)
		}
		o, begun := keeper.Begin(ctx, lease.Name, request)
		kept, finished := keeper.Finish(ctx, lease, sent)
		freed, abandoned := keeper.Abandon(ctx, lease)
		if o.State == idempotency.Started || kept || freed {
			t.Errorf("%s: %v, kept %t, freed %t", name, o.State, kept, freed)
		}
		for call, err := range map[string]error{"begin": begun, "finish": finished, "abandon": abandoned} {
			if !errors.Is(err, idempotency.ErrUnavailable) {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
	}
	// A record whose answer is none.
	record := string(lease.Token[:]) + string(request[:]) + "\x02\x00\x00\x00\x00\x00" + "no answer"
	server.Client().Set(ctx, keyOf("foreign"), record, time.Minute)
	if o, err := keeper.Begin(ctx, lease.Name, request); !errors.Is(err, redisstore.ErrReply) || o.State == idempotency.Started || o.State == idempotency.Replay {
		t.Errorf("an answer that is none: %v, %v", o.State, err)
	}
}
