package local_test

import (
	"crypto/rand"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/idempotencytest"
	"github.com/mailgate/mailgate/idempotency/local"
)

// small remembers so little that nearly every call goes to the disk.
var small = cache.Size{Entries: 8, Bytes: 4096}

// What is remembered and what is read back take different ways through the cache, so the
// suite runs over both.
func TestConformance(t *testing.T) {
	for name, size := range map[string]cache.Size{"remembered": {Entries: 1000, Bytes: 1 << 20}, "forgotten": small} {
		t.Run(name, func(t *testing.T) {
			disk := cachetest.Open(t, t.TempDir())
			idempotencytest.Run(t, func(t testing.TB, terms idempotency.Terms, now func() int64) idempotency.Keeper {
				return openKeeper(t, disk, local.Options{Terms: terms, Now: now, Size: size, Name: rand.Text()})
			}, 20_000)
		})
	}
}

func openKeeper(t testing.TB, disk *cache.Disk, o local.Options) *local.Keeper {
	t.Helper()
	keeper, err := local.New(disk, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.Close)
	return keeper
}
