package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
)

var ctx = context.Background()

// never is an expiry that no clock reaches.
const never = math.MaxInt64

// clock is one that tests set.
type clock struct{ atomic.Int64 }

func newClock(at int64) *clock {
	c := new(clock)
	c.Store(at)
	return c
}

// open opens a store for as long as the test runs.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	s := must.Get(Open(o))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t testing.TB, table *Table, key, value string, expires int64) {
	t.Helper()
	must.OK(t, tryPut(table, key, value, expires))
}

func tryPut(table *Table, key, value string, expires int64) error {
	return table.Update(ctx, key, func([]byte, int64) ([]byte, int64) { return []byte(value), expires })
}

func remove(t testing.TB, table *Table, key string) {
	t.Helper()
	must.OK(t, table.Update(ctx, key, func([]byte, int64) ([]byte, int64) { return nil, 0 }))
}

func expect(t testing.TB, table *Table, key, value string) {
	t.Helper()
	got, err := table.Get(ctx, key)
	if err != nil || got == nil || string(got) != value {
		t.Fatalf("%s is %q, %v; want %q", key, got, err, value)
	}
}

func expectNone(t testing.TB, table *Table, key string) {
	t.Helper()
	if got, err := table.Get(ctx, key); err != nil || got != nil {
		t.Fatalf("%s is %q, %v; want no value", key, got, err)
	}
}

// homes runs a test in memory alone and in a directory.
func homes(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("memory", func(t *testing.T) { test(t, Options{}) })
	t.Run("disk", func(t *testing.T) { test(t, Options{Dir: t.TempDir()}) })
}

func TestUpdate_Steps_ReplaceAndRemove(t *testing.T) {
	homes(t, func(t *testing.T, o Options) {
		s := open(t, o)
		a, b := s.Table("a"), s.Table("b")
		expectNone(t, a, "key")
		remove(t, a, "key")
		put(t, a, "key", "one", never)
		put(t, b, "key", "other", never)
		put(t, a, "", "of the empty key", never)
		put(t, a, "empty", "", never)
		expect(t, s.Table("a"), "key", "one")
		var saw []byte
		must.OK(t, a.Update(ctx, "key", func(old []byte, _ int64) ([]byte, int64) {
			saw = slices.Clone(old)
			return append(slices.Clone(old), " two"...), never
		}))
		if string(saw) != "one" {
			t.Errorf("the step saw %q", saw)
		}
		expect(t, a, "key", "one two")
		expect(t, a, "", "of the empty key")
		expect(t, a, "empty", "")
		remove(t, a, "key")
		expectNone(t, a, "key")
		expect(t, b, "key", "other")
	})
}

func TestGet_Expiry_GoesByTheClock(t *testing.T) {
	homes(t, func(t *testing.T, o Options) {
		now := newClock(1000)
		o.Now = now.Load
		table := open(t, o).Table("t")
		put(t, table, "key", "value", 2000)
		put(t, table, "past", "value", 1000)
		expectNone(t, table, "past")
		now.Store(1999)
		expect(t, table, "key", "value")
		put(t, table, "key", "value", 4000) // equal, so nothing changes
		put(t, table, "longer", "value", 2000)
		put(t, table, "longer", "another", 3000)
		now.Store(2000)
		expectNone(t, table, "key")
		now.Store(2999)
		expect(t, table, "longer", "another")
		now.Store(3000)
		expectNone(t, table, "longer")
		must.OK(t, table.Update(ctx, "key", func(old []byte, _ int64) ([]byte, int64) {
			if old != nil {
				t.Errorf("the step saw the expired %q", old)
			}
			return []byte("new"), 4000
		}))
		expect(t, table, "key", "new")
		now.Store(4500)
		remove(t, table, "key")
		now.Store(3500) // a clock that steps back does not find it again
		expectNone(t, table, "key")
	})
}

func TestEach_OneTable_VisitsWhatIsLive(t *testing.T) {
	homes(t, func(t *testing.T, o Options) {
		now := newClock(1000)
		o.Now = now.Load
		s := open(t, o)
		table := s.Table("t")
		want := map[string]string{}
		for i := range 3000 {
			key, value := fmt.Sprint("key", i), fmt.Sprint("value", i)
			put(t, table, key, value, 1001+int64(i%2))
			if i%2 == 1 {
				want[key] = value
			}
		}
		put(t, s.Table("t2"), "key", "of another table", never)
		now.Store(1001)
		got := map[string]string{}
		if err := table.Each(ctx, func(key string, value []byte) bool {
			got[key] = string(value)
			return true
		}); err != nil || !maps.Equal(got, want) {
			t.Fatalf("visited %d of %d, %v", len(got), len(want), err)
		}
		n := 0
		if err := table.Each(ctx, func(key string, value []byte) bool {
			put(t, table, key, "written meanwhile", never)
			n++
			return n < 10
		}); err != nil || n != 10 {
			t.Fatalf("visited %d of 10, %v", n, err)
		}
	})
}

func TestCalls_EndedContextOrClosedStore_SayWhy(t *testing.T) {
	homes(t, func(t *testing.T, o Options) {
		s := open(t, o)
		table := s.Table("t")
		put(t, table, "key", "value", never)
		ended, end := context.WithCancel(ctx)
		end()
		if err := appendTo(ended, table, "key", "more"); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		expect(t, table, "key", "value")
		must.OK(t, s.Close())
		_, getting := table.Get(ctx, "key")
		for name, err := range map[string]error{
			"get":    getting,
			"update": tryPut(table, "key", "other", never),
			"each":   table.Each(ctx, func(string, []byte) bool { return true }),
			"ready":  s.Ready(ctx),
		} {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Each goroutine counts up under few keys: no step is lost, and no reader sees a count
// older than one that was acknowledged before it began to read.
func TestUpdate_Concurrent_LosesNoStep(t *testing.T) {
	homes(t, func(t *testing.T, o Options) {
		if o.Dir != "" {
			o.Bytes = 8 << 10 // less than the values take
		}
		table := open(t, o).Table("t")
		const keys, size = 24, 1000
		var steps, known [keys]atomic.Int64
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for range 300 {
					i := rand.IntN(keys)
					key, least := fmt.Sprint("key", i), known[i].Load()
					value, err := table.Get(ctx, key)
					if n := count(value); err != nil || n < least {
						t.Errorf("read %d after %d was acknowledged, %v", n, least, err)
					}
					if rand.IntN(2) == 0 {
						continue
					}
					var next int64
					if err := table.Update(ctx, key, func(old []byte, _ int64) ([]byte, int64) {
						next = count(old) + 1
						return fmt.Appendf(nil, "%*d", size, next), never
					}); err != nil {
						t.Error(err)
					}
					steps[i].Add(1)
					for old := known[i].Load(); old < next && !known[i].CompareAndSwap(old, next); old = known[i].Load() {
					}
				}
			})
		}
		group.Wait()
		for i := range keys {
			value, err := table.Get(ctx, fmt.Sprint("key", i))
			if n := count(value); err != nil || n != steps[i].Load() {
				t.Errorf("key %d counts %d of %d, %v", i, n, steps[i].Load(), err)
			}
		}
	})
}

func count(value []byte) (n int64) {
	_, _ = fmt.Sscan(string(value), &n) // 0 without a value
	return n
}
