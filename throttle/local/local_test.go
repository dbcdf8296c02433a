package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const mailbox = "alice@example.com"

var ctx = context.Background()

func open(t testing.TB, o cache.Options) *cache.Store {
	t.Helper()
	store := must.Get(cache.Open(o))(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil && !errors.Is(err, cache.ErrClosed) {
			t.Error(err)
		}
	})
	return store
}

func take(t testing.TB, l *throttle.Limiter, key string) throttle.Verdict {
	t.Helper()
	return must.Get(l.Take(ctx, key))(t)
}

func TestLimiter_OnDisk_KeepsTheContract(t *testing.T) {
	throttletest.Run(t, throttletest.Local(t, t.TempDir()), throttletest.Length(1_000, 20_000))
}

// A stricter limit applies to some of the sends that another counts.
func TestNew_OneTable_SharesRecords(t *testing.T) {
	table := open(t, cache.Options{}).Table("visitors")
	all := throttletest.Counters(t, "minute=3/60s")["sliding window"]
	few := throttletest.Counters(t, "minute=2/60s")["sliding window"]
	first, again := local.New(table, all), local.New(table, few)
	take(t, first, mailbox)
	take(t, again, mailbox)
	if take(t, again, mailbox).Allowed {
		t.Error("the stricter limiter admitted a third send")
	}
	if !take(t, first, mailbox).Allowed || take(t, first, mailbox).Allowed {
		t.Error("the other limiter does not admit three sends in all")
	}
}

// Algorithms of different forms do not read each other's states.
func TestNew_OtherForm_CountsApart(t *testing.T) {
	table := open(t, cache.Options{}).Table("visitors")
	policy := local.New(table, throttletest.Policy(t, "minute=1/60s"))
	take(t, policy, mailbox)
	for name, a := range throttletest.Counters(t, "minute=1/60s") {
		limiter := local.New(table, a)
		if !take(t, limiter, mailbox).Allowed || take(t, limiter, mailbox).Allowed {
			t.Errorf("%s does not count by itself", name)
		}
	}
	if n, err := policy.Reset(ctx, mailbox); n != 1 || err != nil {
		t.Errorf("%d sends were forgotten, %v", n, err)
	}
}

// A call on a closed store is unavailable, says why and does not name the mailbox.
func TestLimiter_ClosedStore_IsUnavailable(t *testing.T) {
	store := open(t, cache.Options{})
	limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
	must.OK(t, store.Close())
	_, written := limiter.Take(ctx, mailbox)
	_, read := limiter.Peek(ctx, mailbox)
	for _, err := range []error{written, read} {
		if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) || strings.Contains(err.Error(), "alice") {
			t.Error(err)
		}
	}
}

// A store without room admits no new key, still refuses the others, and admits again once
// there is room.
func TestLimiter_FullMemory_StillRefusesAndRecovers(t *testing.T) {
	store := open(t, cache.Options{Bytes: 4096})
	limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
	var keys []string
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		keys = append(keys, throttle.NewID().String())
		_, err = limiter.Take(ctx, keys[i])
	}
	if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, cache.ErrFull) {
		t.Fatalf("after %d keys: %v", len(keys), err)
	}
	if v := take(t, limiter, keys[0]); v.Allowed || v.Limit != "minute" {
		t.Errorf("a key on record: %+v", v)
	}
	if _, err := limiter.Reset(ctx, keys[0]); err != nil {
		t.Error(err)
	}
	take(t, limiter, keys[len(keys)-1])
}

// Many more mailboxes than memory holds: each that was admitted is refused the next time, and after
// a restart.
func TestTake_MoreMailboxesThanMemoryHolds_ForgetsNone(t *testing.T) {
	mailboxes := throttletest.Length(4_000, 100_000)
	dir := t.TempDir()
	for round := range 3 {
		store := open(t, cache.Options{Dir: dir, Bytes: 4096, Now: func() int64 { return 1_800_000_000_000 }})
		limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
		var done sync.WaitGroup
		for caller := range 16 {
			done.Go(func() {
				for i := caller; i < mailboxes; i += 16 {
					v, err := limiter.Take(ctx, fmt.Sprintf("user%d@example.com", i))
					if err != nil || v.Allowed != (round == 0) {
						t.Errorf("round %d, mailbox %d: allowed %v, %v", round, i, v.Allowed, err)
						return
					}
				}
			})
		}
		done.Wait()
		must.OK(t, store.Close())
	}
}
