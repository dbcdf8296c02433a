package local_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// small remembers a few of a crowd, and reads the others back. Of one key alone it forgets
// nothing: for those there are memories.
var small = cache.Size{Entries: 8, Bytes: 4096}

// A memory is how much a limiter remembers, and how it then comes by what it knows of a key.
type memory struct {
	name string
	size cache.Size
}

// By turns, an entry is remembered while it takes no more bytes than this.
const (
	shortHistory = 300 // of up to two sends
	shortState   = 500 // of up to eleven
)

// memories are the ways through the cache: everything is remembered, or only an entry that is
// short, so that a key which grows and shrinks goes through memory and disk, or nothing is.
func memories(short int64) []memory {
	return []memory{
		{"remembered", cache.Size{Entries: 1000, Bytes: 1 << 20}},
		{"by turns", cache.Size{Entries: 1, Bytes: short}},
		{"forgotten", cache.Size{Entries: 1, Bytes: 1}},
	}
}

// waysToConform are those that a whole suite goes: all of them, and by turns alone under
// -short, where what is short is remembered and what is long is read back.
func waysToConform(short int64) []memory {
	all := memories(short)
	if testing.Short() {
		return all[1:2]
	}
	return all
}

// A limiter that is opened on what is short and on what is long remembers it as its memory
// has it, or whoever goes over all memories would show less than he says.
func TestMemories(t *testing.T) {
	const short, long = 2, 16
	want := map[string]map[int]bool{
		"remembered": {short: true, long: true},
		"by turns":   {short: true, long: false},
		"forgotten":  {short: false, long: false},
	}
	histories := func(t *testing.T, disk *cache.Disk, size cache.Size) (throttle.Limiter, func()) {
		limiter := openLimiter(t, disk, local.Options{Policy: throttletest.Policy(t, "day=16/24h"), Now: standing, Size: size})
		return limiter, limiter.Close
	}
	states := func(t *testing.T, disk *cache.Disk, size cache.Size) (throttle.Limiter, func()) {
		meters := openMeters(t, disk, local.MetersOptions{Now: standing, Size: size})
		return meters.Limiter("quota", algorithms["queue"](t, long)), meters.Close
	}
	for _, memory := range memories(shortHistory) {
		for sends, remembered := range want[memory.name] {
			remembersAfterwards(t, histories, memory, sends, remembered)
		}
	}
	for _, memory := range memories(shortState) {
		for sends, remembered := range want[memory.name] {
			remembersAfterwards(t, states, memory, sends, remembered)
		}
	}
}

func remembersAfterwards(t *testing.T, open func(*testing.T, *cache.Disk, cache.Size) (throttle.Limiter, func()), memory memory, sends int, want bool) {
	t.Helper()
	disk := cachetest.Open(t, cache.Memory)
	limiter, shut := open(t, disk, memory.size)
	for range sends {
		take(t, limiter, "a@example.com", throttle.NewID(), true)
	}
	shut()
	limiter, _ = open(t, disk, memory.size)
	for range 3 { // what was only queued is brought in by who asks next
		if _, err := limiter.Peek(context.Background(), "a@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	if got := local.Remembers(limiter, "a@example.com"); got != want {
		t.Errorf("%s: of %d sends it is in memory: %t, want %t", memory.name, sends, got, want)
	}
}
