package local_test

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A million steps through random histories against the model, with every store: on disk and in memory, with
// room to remember and with so little that every other step goes to the disk.
func TestRandomHistories(t *testing.T) {
	const steps = 1_000_000
	dirs := []string{t.TempDir(), cache.Memory}
	sizes := []cache.Size{cache.DefaultSize(), small}
	seed := uint64(1)
	for _, dir := range dirs {
		disk := cachetest.Open(t, dir)
		for _, size := range sizes {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				throttletest.Walk(t, opener(disk, size), seed, steps/(len(dirs)*len(sizes)))
			})
			seed++
		}
	}
}
