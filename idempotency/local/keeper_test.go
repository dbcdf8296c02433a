package local_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/local"
)

// noon is where the clocks of these tests stand.
const noon = int64(1_800_000_000_000)

var (
	name   = idempotency.Name{Caller: "website", Key: "8e03978e"}
	body   = idempotency.Fingerprint([]byte("thirty-two bytes of fingerprint!"))
	answer = idempotency.Answer{
		Status: 200,
		Header: []idempotency.Field{{Name: "Content-Type", Value: "application/json"}},
		Body:   []byte(`{"status":"sent","email":"alice@example.com"}`),
	}
)

func TestOptionsThatWillNotDo(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	for name, o := range map[string]local.Options{
		"half a size":  {Size: cache.Size{Entries: 1}},
		"a NUL inside": {Name: "a\x00b"},
		"half a term":  {Terms: idempotency.Terms{Lease: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if k, err := local.New(disk, o); err == nil {
				k.Close()
				t.Fatal("opened")
			}
		})
	}
	openKeeper(t, disk, local.Options{})
	if _, err := local.New(disk, local.Options{}); err == nil {
		t.Error("a second keeper of the same name was opened")
	}
}

// The machine's clock and the usual terms are the default, and readiness is asked of the
// disk.
func TestDefaults(t *testing.T) {
	keeper := openKeeper(t, cachetest.Open(t, cache.Memory), local.Options{})
	ctx := context.Background()
	if err := keeper.Ready(ctx); err != nil {
		t.Error(err)
	}
	if o, err := keeper.Begin(ctx, name, body); o.State != idempotency.Started || err != nil {
		t.Fatal(o.State, err)
	}
	if o, err := keeper.Begin(ctx, name, body); o.State != idempotency.InFlight || o.RetryAfter < 50_000 || o.RetryAfter > 60_000 || err != nil {
		t.Errorf("%v, retry after %d, %v", o.State, o.RetryAfter, err)
	}
}

// After Close, and after the disk was closed, each call is unavailable and says why; it
// names neither the caller nor the key, and tells nothing of the request and its answer.
func TestClosed(t *testing.T) {
	for what, closing := range map[string]func(*local.Keeper, *cache.Disk) error{
		"keeper": func(k *local.Keeper, _ *cache.Disk) error { k.Close(); return nil },
		"disk":   func(_ *local.Keeper, d *cache.Disk) error { return d.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			disk := cachetest.Open(t, cache.Memory)
			keeper := openKeeper(t, disk, local.Options{})
			ctx := context.Background()
			// These are remembered, whatever the disk says.
			first, err := keeper.Begin(ctx, name, body)
			if err != nil {
				t.Fatal(err)
			}
			second, err := keeper.Begin(ctx, idempotency.Name{Caller: name.Caller, Key: "second"}, body)
			if err != nil {
				t.Fatal(err)
			}
			if err := closing(keeper, disk); err != nil {
				t.Fatal(err)
			}
			o, begun := keeper.Begin(ctx, idempotency.Name{Caller: name.Caller, Key: name.Key + "!"}, body)
			kept, finished := keeper.Finish(ctx, first.Lease, answer)
			freed, abandoned := keeper.Abandon(ctx, second.Lease)
			if o.State == idempotency.Started || kept || freed {
				t.Errorf("%v, kept %t, freed %t", o.State, kept, freed)
			}
			for call, err := range map[string]error{"begin": begun, "finish": finished, "abandon": abandoned, "ready": keeper.Ready(ctx)} {
				if !errors.Is(err, idempotency.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) {
					t.Errorf("%s: %v", call, err)
				}
				for _, secret := range []string{name.Caller, name.Key, "alice", string(body[:]), hex.EncodeToString(body[:]), fmt.Sprint(body)} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s says too much: %v", call, err)
					}
				}
			}
		})
	}
}

// A keeper closes and opens again: what was done is answered, what is in flight is in
// flight, and whoever began it may still finish.
func TestARestartForgetsNothing(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	other := idempotency.Name{Caller: name.Caller, Key: "other"}
	keeper, closing := reopen(t, dir, noon)
	done, err := keeper.Begin(ctx, name, body)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := keeper.Finish(ctx, done.Lease, answer); !kept || err != nil {
		t.Fatal(kept, err)
	}
	begun, err := keeper.Begin(ctx, other, body)
	if err != nil || begun.State != idempotency.Started {
		t.Fatal(begun.State, err)
	}
	closing()

	keeper, closing = reopen(t, dir, noon+59_999)
	defer closing()
	o, err := keeper.Begin(ctx, name, body)
	if o.State != idempotency.Replay || err != nil || fmt.Sprint(o.Answer) != fmt.Sprint(answer) {
		t.Errorf("what was done: %v %v, %v", o.State, o.Answer, err)
	}
	if o, err := keeper.Begin(ctx, other, body); o.State != idempotency.InFlight || o.RetryAfter != 1 || err != nil {
		t.Errorf("what was begun: %v, retry after %d, %v", o.State, o.RetryAfter, err)
	}
	if kept, err := keeper.Finish(ctx, begun.Lease, answer); !kept || err != nil {
		t.Errorf("finish: kept %t, %v", kept, err)
	}
}

// reopen opens what is in a directory, at that moment.
func reopen(t *testing.T, dir string, now int64) (keeper *local.Keeper, closing func()) {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	keeper, err = local.New(disk, local.Options{Size: small, Now: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return keeper, func() {
		keeper.Close()
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A record is seen as long as it lasts, and looking begins nothing.
func TestLook(t *testing.T) {
	now := noon
	k := openKeeper(t, cachetest.Open(t, cache.Memory), local.Options{Now: func() int64 { return now }, Terms: idempotency.Terms{Lease: 100, Keep: 1000}})
	asked := func(name idempotency.Name) idempotency.Lease {
		return idempotency.Lease{Name: name, Body: body, Token: idempotency.NewToken()}
	}
	knows := func(want bool) {
		t.Helper()
		if _, got, err := k.Look(context.Background(), asked(name)); err != nil || got != want {
			t.Errorf("known: %v, %v", got, err)
		}
	}
	knows(false)
	o, err := k.Begin(context.Background(), name, body)
	if err != nil {
		t.Fatal(err)
	}
	knows(true)
	if _, got, err := k.Look(context.Background(), o.Lease); err != nil || got {
		t.Errorf("of a lease that may begin again: %v, %v", got, err)
	}
	if _, err := k.Finish(context.Background(), o.Lease, answer); err != nil {
		t.Fatal(err)
	}
	now += 999
	knows(true)
	now++
	knows(false)
	if _, _, err := k.Look(context.Background(), asked(idempotency.Name{})); !errors.Is(err, idempotency.ErrKey) {
		t.Errorf("of no name: %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, _, err := k.Look(ended, asked(name)); !errors.Is(err, idempotency.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("for nobody: %v", err)
	}
}
