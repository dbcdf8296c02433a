package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestGlance(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "glance")
	for name, tt := range map[string]struct {
		value int
		now   int64
		brief Brief
		found bool
	}{
		"in brief":               {4, 0, Brief{5, ^uint64(4)}, false},
		"in brief, and expired":  {6, never, Brief{7, ^uint64(6)}, false},
		"not in brief":           {5, 0, Brief{}, true},
		"neither, as it expired": {7, never, Brief{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, m, name, tt.value)
			m.hot.Wait()
			expect(t, m, name, tt.value) // brings it forward
			want := 0
			if tt.found {
				want = tt.value
			}
			if brief, n, found := m.Glance(name, tt.now); brief != tt.brief || n != want || found != tt.found {
				t.Errorf("%v, %d, %t; want %v, %d, %t", brief, n, found, tt.brief, want, tt.found)
			}
		})
	}
	if brief, n, found := m.Glance("never put", 0); brief != (Brief{}) || n != 0 || found {
		t.Errorf("of nothing it says %v, %d, %t", brief, n, found)
	}
	m.Close()
	if brief, n, found := m.Glance("in brief", 0); brief != (Brief{}) || n != 0 || found {
		t.Errorf("closed, it says %v, %d, %t", brief, n, found)
	}
}

// What has no place in front is glanced at where Ristretto has it, and is brought forward.
func TestAGlanceBringsForward(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "forward")
	set(t, m, "key", 4)
	m.hot.Wait()
	m.front.forget(m.front.print("key"))
	if brief, n, found := m.Glance("key", 0); brief != (Brief{}) || n != 4 || !found {
		t.Errorf("behind the front: %v, %d, %t", brief, n, found)
	}
	if n, found := glance(t, m, "key", 0); n != 4 || !found || m.front.find(m.front.print("key")) == nil {
		t.Errorf("brought forward: %d, %t", n, found)
	}
}

// A glance at a value in brief does not touch the value: so it takes no longer however far
// that is.
func TestAGlanceDoesWithoutTheEntry(t *testing.T) {
	f := newFront[int](1)
	p := f.print("key")
	f.put(&Entry[int]{print: p}, Brief{1, 2})
	for i := range f.buckets[0] {
		f.buckets[0][i].entry.Store(nil)
	}
	if brief, e := f.glance(p); brief != (Brief{1, 2}) || e != nil {
		t.Errorf("%v, %v", brief, e)
	}
}

// A check fits no brief but the one it came with, also where another is like it.
func TestAnotherBriefDoesNotFit(t *testing.T) {
	f := newFront[int](1)
	p, l := f.print("key"), &f.buckets[0][0]
	for _, pair := range [][2]Brief{
		{{1, 2}, {2, 1}}, {{1, 2}, {3, 2}}, {{1, 2}, {1, 3}}, {{1, 2}, {}},
		{{5, ^uint64(5)}, {6, ^uint64(6)}}, {{7, 7}, {8, 8}}, {{0, 1}, {0, 2}}, {{1, 0}, {2, 0}},
	} {
		l.check.Store(f.check(p, pair[0]))
		for i, b := range pair {
			l.brief[0].Store(b[0])
			l.brief[1].Store(b[1])
			if _, fits := f.fits(l, p); fits != (i == 0) {
				t.Errorf("beside the check of %v: %v fits, %t", pair[0], b, fits)
			}
		}
	}
}

// Who finds a place busy leaves it alone, whether to write there or to clear it: what is half
// written is nobody's.
func TestABusyPlace(t *testing.T) {
	f := newFront[int](1)
	old, other := &Entry[int]{print: f.print("old")}, &Entry[int]{print: f.print("other")}
	f.put(old, Brief{1, 2})
	for i := range f.buckets[0] {
		f.buckets[0][i].check.Store(busy)
		f.buckets[0][i].entry.CompareAndSwap(nil, new(Entry[int]))
	}
	f.put(other, Brief{3, 4})
	f.forget(old.print)
	f.drop(other)
	for i := range f.buckets[0] {
		at := &f.buckets[0][i]
		if check, word := at.check.Load(), at.brief[0].Load(); check != busy || word == 3 {
			t.Errorf("a busy place has %d beside the check %d", word, check)
		}
	}
	if e := f.find(other.print); e != nil {
		t.Error("the other has a place")
	}
}

// More keys than places, written, dropped and read at once, with words that many share: what
// is found of a key is its own, and never older than what was put last.
func TestPlacesThatManyWrite(t *testing.T) {
	f := newFront[int](1)
	const keys, rounds = 3 * ways, 20_000
	var begun, done [keys]atomic.Int64 // rounds, from 1 on
	var last [keys]atomic.Pointer[Entry[int]]
	look := func(key int, p print) {
		least := done[key].Load()
		brief, e := f.glance(p)
		n := int64(brief[0])
		if e != nil {
			n = int64(e.value)
		}
		if most := begun[key].Load(); n != 0 && (n < least || n > most || brief[0] != 0 && brief[1] != 7) {
			t.Errorf("key %d, between %d and %d: %v, %v", key, least, most, brief, e)
		}
	}
	var writers, others sync.WaitGroup
	var over atomic.Bool
	for key := range keys {
		p := f.print(fmt.Sprint("key", key))
		writers.Go(func() {
			for n := int64(1); n <= rounds; n++ {
				f.forget(p)
				if brief, e := f.glance(p); brief != (Brief{}) || e != nil {
					t.Errorf("key %d is forgotten, and %v, %v", key, brief, e)
				}
				begun[key].Store(n)
				e := &Entry[int]{value: int(n), print: p}
				last[key].Store(e)
				var brief Brief
				if n%5 != 0 {
					brief = Brief{uint64(n), 7}
				}
				f.put(e, brief)
				done[key].Store(n)
				if n%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for range 2 {
		others.Go(func() {
			for !over.Load() {
				key := rand.IntN(keys)
				look(key, f.print(fmt.Sprint("key", key)))
				if rand.IntN(8) == 0 {
					f.drop(last[rand.IntN(keys)].Load())
				}
			}
		})
	}
	writers.Wait()
	over.Store(true)
	others.Wait()
	for i := range f.buckets[0] {
		at := &f.buckets[0][i]
		if e := at.entry.Load(); e != nil {
			f.drop(e)
		}
		if check := at.check.Load(); check == busy {
			t.Error("a place is left busy")
		}
	}
}
