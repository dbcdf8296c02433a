package cache

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
)

// nowhere is a store that keeps nothing, for tests of what is in memory.
type nowhere struct{}

func (nowhere) get([]byte, func([]byte) error) (bool, error) { return false, nil }
func (nowhere) put([]byte, []byte, int64) error              { return nil }
func (nowhere) delete([]byte) error                          { return nil }
func (nowhere) list([]byte, []byte, int, func(key, value []byte) error) ([]byte, error) {
	return nil, nil
}

func (nowhere) Ready(context.Context) error { return nil }

// blobs are values that weigh what they are long.
type blobs struct{}

func (blobs) Append(b []byte, value []byte) []byte { return append(b, value...) }
func (blobs) Parse(b []byte) ([]byte, error)       { return append([]byte(nil), b...), nil }
func (blobs) Weigh(value []byte) int               { return cap(value) }

// fill puts values of one length under so many keys and returns how many are in
// memory and what they weigh, overhead and all.
func fill(t *testing.T, m *Map[[]byte], keys, length int) (held, bytes int64) {
	t.Helper()
	for i := range keys {
		err := m.Update(context.Background(), fmt.Sprintf("user%d@example.com", i), at(0), func([]byte, bool, int64) Edit[[]byte] {
			return Put(make([]byte, length), never)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	m.hot.Wait()
	m.hot.IterValues(func(e *Entry[[]byte]) bool {
		held++
		bytes += int64(len(e.value)) + entryOverhead
		return false
	})
	return held, bytes
}

func openBlobs(t *testing.T, size Size) *Map[[]byte] {
	t.Helper()
	m, err := newMap[[]byte](nowhere{}, "blobs", blobs{}, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// Both limits hold, and what they allow is used.
func TestBothLimitsHold(t *testing.T) {
	for name, tc := range map[string]struct {
		size   Size
		length int
		held   int64
	}{
		"entries are the limit":   {Size{Entries: 100, Bytes: 1 << 30}, 100, 100},
		"bytes are the limit":     {Size{Entries: 1 << 40, Bytes: 100_000}, 250, 200},
		"both":                    {Size{Entries: 200, Bytes: 100_000}, 250, 200},
		"an odd share":            {Size{Entries: 333, Bytes: 100_000}, 10, 333},
		"one entry":               {Size{Entries: 1, Bytes: 1 << 20}, 100, 1},
		"too small for any":       {Size{Entries: 1000, Bytes: 1}, 0, 0},
		"values too big for it":   {Size{Entries: 1000, Bytes: 5000}, 6000, 0},
		"as large as can be said": {Size{Entries: math.MaxInt64, Bytes: 1 << 20}, 774, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			held, bytes := fill(t, openBlobs(t, tc.size), 3000, tc.length)
			if held > tc.size.Entries || bytes > tc.size.Bytes {
				t.Errorf("%d entries of %d bytes in a size of %+v", held, bytes, tc.size)
			}
			if held > tc.held || held < tc.held-1-tc.held/100 {
				t.Errorf("%d entries, want %d", held, tc.held)
			}
		})
	}
}

// Values that grow in place are over the limit only until other keys come.
func TestGrowingValuesMakeRoom(t *testing.T) {
	size := Size{Entries: 1000, Bytes: 400_000}
	m := openBlobs(t, size)
	fill(t, m, 1000, 10)
	fill(t, m, 1000, 1000) // the same keys
	if held, bytes := fill(t, m, 1001, 1000); held > size.Entries || bytes > size.Bytes {
		t.Errorf("%d entries of %d bytes in a size of %+v", held, bytes, size)
	}
}

// New keys are remembered however many others have grown before them, each by its own length,
// and the Map is not over its size by more than the last of them. Nothing is dropped for a full
// queue: each write waits until Ristretto has it. It lets in a third of them, as all were asked
// for equally often, and all where the race detector has it lose its counts.
func TestNewKeysThatGrow(t *testing.T) {
	size := Size{Entries: 1000, Bytes: 100_000}
	m := openBlobs(t, size)
	const keys, longest = 5000, 2000
	remembered := 0
	for i := range keys {
		key := fmt.Sprint("key", i)
		for _, length := range []int{10, i * 7 % longest} {
			err := m.Update(context.Background(), key, at(0), func([]byte, bool, int64) Edit[[]byte] {
				return Put(make([]byte, length), never)
			})
			if err != nil {
				t.Fatal(err)
			}
			m.hot.Wait()
		}
		if _, found := m.Recall(key, 0); found && i >= keys/2 {
			remembered++
		}
	}
	if remembered < keys/10 {
		t.Errorf("of the last %d keys %d are remembered", keys/2, remembered)
	}
	if _, bytes := fill(t, m, 1, 10); bytes > size.Bytes+longest {
		t.Errorf("%d bytes in a size of %+v", bytes, size)
	}
}

func TestDefaultSizeHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("make flood has it")
	}
	const oneSend, tenSends = 16, 160
	for length, want := range map[int]int64{oneSend: 100_000, tenSends: 70_000} {
		before := heap()
		m := openBlobs(t, DefaultSize())
		held, _ := fill(t, m, 150_000, length)
		if held < want {
			t.Errorf("%d values of %d bytes are held, want %d", held, length, want)
		}
		if taken := heap() - before; taken > DefaultSize().Bytes*5/4 || taken < DefaultSize().Bytes/2 {
			t.Errorf("they take %d bytes of memory, want about %d", taken, DefaultSize().Bytes)
		}
		m.Close()
	}
}

// heap is what is in use once all that was closed has been given back, and what a pool
// had with it.
func heap() int64 {
	for range 3 {
		collected := make(chan struct{})
		runtime.AddCleanup(new(*int), func(done chan struct{}) { close(done) }, collected)
		runtime.GC()
		<-collected
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestSizesThatWillNotDo(t *testing.T) {
	for _, size := range []Size{{}, {Entries: 1}, {Bytes: 1}, {Entries: -1, Bytes: 1}, {Entries: 1, Bytes: -1}} {
		if m, err := newMap[int](nowhere{}, "m", numbers{}, size); err == nil {
			t.Errorf("%+v made a map", size)
			m.Close()
		}
	}
}
