package cache

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestMemory_Full_RefusesUntilSomethingExpiresOrGoes(t *testing.T) {
	now := newClock(0)
	s := open(t, Options{Bytes: 64 << 10, Now: now.Load})
	table := s.Table("t")
	n := 0
	var err error
	for ; err == nil; n++ {
		err = tryPut(table, fmt.Sprint("key", n), "value", 1000)
	}
	if !errors.Is(err, ErrFull) || n < 200 || n > 500 {
		t.Fatalf("after %d values: %v", n, err)
	}
	if err := s.Ready(ctx); !errors.Is(err, ErrFull) {
		t.Errorf("ready: %v", err)
	}
	expect(t, table, "key0", "value")
	put(t, table, "key0", "other", 1000)
	if err := tryPut(table, "key0", strings.Repeat("long", 100), 1000); !errors.Is(err, ErrFull) {
		t.Errorf("a longer value: %v", err)
	}
	remove(t, table, "key1")
	put(t, table, "new", "value", 1000)

	now.Store(1001)
	if err := s.Ready(ctx); err != nil {
		t.Errorf("ready with room again: %v", err)
	}
	for i := range n * 9 / 10 {
		put(t, table, fmt.Sprint("later", i), "value", 2000)
	}
}

// Records that are written once and never read again do not pile up.
func TestMemory_ManyShortLives_StayFew(t *testing.T) {
	now := newClock(0)
	s := open(t, Options{Now: now.Load})
	table := s.Table("t")
	for i := range 100_000 {
		now.Store(int64(i))
		put(t, table, fmt.Sprint("key", i), "value", int64(i)+1000)
	}
	kept := 0
	m := s.records.(*memory)
	for i := range m.shards {
		kept += len(m.shards[i].records)
	}
	if kept > 1500 {
		t.Errorf("%d records are kept of 1000 that are live", kept)
	}
}

func TestMemory_Bytes_BoundTheHeap(t *testing.T) {
	const most = 16 << 20
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s := open(t, Options{Bytes: most})
	table := s.Table("t")
	var err error
	text := 0
	for i := 0; err == nil; i++ {
		key, value := fmt.Sprintf("%d@example.com", i), strings.Repeat("v", i%120)
		err = tryPut(table, key, value, never)
		text += len(key) + len(value)
	}
	if took := heap() - before; !errors.Is(err, ErrFull) || took > most*5/4 || text < most/8 {
		t.Errorf("%d MB of %d are in use by %d MB of text, %v", took>>20, most>>20, text>>20, err)
	}
	runtime.KeepAlive(s)
}
