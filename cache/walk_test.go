package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// walked are the numbers that a walk finds, with their keys.
func walked(t *testing.T, m *Map[int], now int64) (all []string) {
	t.Helper()
	err := m.Each(context.Background(), now, func(key string, n int) bool {
		all = append(all, fmt.Sprint(key, "=", n))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Everything that is live is found, also what memory has forgotten, and nothing of others.
func TestEach(t *testing.T) {
	for _, dir := range []string{Memory, t.TempDir()} {
		d := open(t, DiskOptions{Dir: dir})
		m, other := openSized(t, d, "walk", tiny), openMap(t, d, "walk2")
		if got := walked(t, m, 0); len(got) != 0 {
			t.Errorf("an empty map has %q", got)
		}
		var want []string
		for i := range 3*walkStep + 1 {
			key := fmt.Sprintf("key%04d", i)
			set(t, m, key, i)
			set(t, other, key, -i)
			want = append(want, fmt.Sprint(key, "=", i))
		}
		if got := walked(t, m, 0); !slices.Equal(got, want) {
			t.Errorf("found %d values, want %d", len(got), len(want))
		}
		for _, edit := range []struct {
			key  string
			edit Edit[int]
		}{{"key0000", Remove[int]()}, {"key0001", Put(1, 99)}, {"key0002", Put(2, 100)}, {"", Put(-1, 100)}, {"\x00", Put(-2, 100)}} {
			if err := m.Update(context.Background(), edit.key, at(0), func(int, bool, int64) Edit[int] { return edit.edit }); err != nil {
				t.Fatal(err)
			}
		}
		got := walked(t, m, 99)
		if want = append([]string{"=-1", "\x00=-2", "key0002=2"}, want[3:]...); !slices.Equal(got, want) {
			t.Errorf("found %.60q, want %.60q", got, want)
		}
	}
}

// A walk ends when it is told to, when its time is over, and when the map is closed.
func TestEachEnds(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "walk")
	for i := range 2 * walkStep {
		set(t, m, fmt.Sprint(i), i)
	}
	seen := 0
	if err := m.Each(context.Background(), 0, func(string, int) bool { seen++; return seen < 3 }); err != nil || seen != 3 {
		t.Errorf("saw %d, %v", seen, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	seen = 0
	if err := m.Each(ctx, 0, func(string, int) bool { seen++; cancel(); return true }); !errors.Is(err, context.Canceled) || seen != walkStep {
		t.Errorf("saw %d, %v", seen, err)
	}
	seen = 0
	if err := m.Each(context.Background(), 0, func(string, int) bool { seen++; m.Close(); return true }); !errors.Is(err, ErrClosed) || seen != walkStep {
		t.Errorf("saw %d, %v", seen, err)
	}
}

// Bytes that are no value end the walk, and it says so.
func TestEachOfDamage(t *testing.T) {
	d := open(t, DiskOptions{Dir: Memory})
	m := openMap(t, d, "walk")
	set(t, m, "a", 1)
	if err := d.put(m.diskKey("b"), []byte{}, never); err != nil {
		t.Fatal(err)
	}
	if err := m.Each(context.Background(), 0, func(string, int) bool { return true }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the walk ended with %v", err)
	}
}

// Writers go on, and what they do not touch is found once.
func TestEachBesideWriters(t *testing.T) {
	m := openSized(t, open(t, DiskOptions{Dir: Memory}), "walk", tiny)
	for i := range 2 * walkStep {
		set(t, m, fmt.Sprintf("still%04d", i), i)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := m.Update(context.Background(), fmt.Sprintf("moving%d-%d", w, i%50), at(0), func(int, bool, int64) Edit[int] { return Put(i, never) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		still := 0
		err := m.Each(context.Background(), 0, func(key string, _ int) bool {
			if key[0] == 's' {
				still++
			}
			// A visit may use the map.
			_, _, _, err := m.Get(context.Background(), key, at(0))
			return err == nil
		})
		if err != nil || still != 2*walkStep {
			t.Fatalf("found %d, %v", still, err)
		}
	}
	close(stop)
	writers.Wait()
}
