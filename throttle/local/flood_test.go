package local_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Many more mailboxes than memory holds: each that was admitted is refused the next time, and after
// a restart.
func TestTake_MoreMailboxesThanMemoryHolds_ForgetsNone(t *testing.T) {
	mailboxes := throttletest.Length(4_000, 100_000)
	dir := t.TempDir()
	for round := range 3 {
		store := open(t, cache.Options{Dir: dir, Bytes: 4096})
		limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy(), func() int64 { return 1_800_000_000_000 })
		var done sync.WaitGroup
		for caller := range 16 {
			done.Go(func() {
				for i := caller; i < mailboxes; i += 16 {
					v, err := limiter.Take(ctx, fmt.Sprintf("user%d@example.com", i), throttle.NewID())
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
