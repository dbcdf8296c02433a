package local_test

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A million steps through random histories against the model, on disk and in memory, over
// all memories. Each is another walk, by a seed of its own.
func TestRandomHistories(t *testing.T) {
	steps := 1_000_000
	if testing.Short() {
		steps = 400_000 // of which Walk goes a tenth
	}
	places := []struct{ name, dir string }{{"on disk", t.TempDir()}, {"in memory", cache.Memory}}
	memories := memories(shortHistory)
	for i, place := range places {
		disk := cachetest.Open(t, place.dir)
		for j, memory := range memories {
			seed := uint64(1 + i*len(memories) + j)
			t.Run(fmt.Sprintf("seed %d %s %s", seed, place.name, memory.name), func(t *testing.T) {
				t.Parallel()
				throttletest.Walk(t, opener(disk, memory.size), seed, steps/(len(places)*len(memories)))
			})
		}
	}
}
