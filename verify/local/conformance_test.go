package local_test

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
	"github.com/mailgate/mailgate/verify/verifytest"
)

// small remembers so little that nearly every call goes to the disk.
var small = cache.Size{Entries: 8, Bytes: 4096}

// What is remembered and what is read back take different ways through the cache, so the
// suite runs over both.
func TestConformance(t *testing.T) {
	for name, size := range map[string]cache.Size{"remembered": {Entries: 1000, Bytes: 1 << 20}, "forgotten": small} {
		t.Run(name, func(t *testing.T) {
			disk := cachetest.Open(t, t.TempDir())
			verifytest.Run(t, func(t testing.TB, now func() int64) verify.Book {
				return openBook(t, disk, local.Options{Now: now, Size: size, Name: throttle.NewID().String()})
			}, 20_000)
		})
	}
}

func openBook(t testing.TB, disk *cache.Disk, o local.Options) *local.Book {
	t.Helper()
	book, err := local.New(disk, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	return book
}
