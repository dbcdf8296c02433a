package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// inFront counts what a front holds, and fails the test for each that Ristretto does not.
func inFront(t *testing.T, m *Map[int]) (n int) {
	t.Helper()
	m.hot.Wait()
	held := map[*Entry[int]]bool{}
	m.hot.IterValues(func(e *Entry[int]) bool {
		held[e] = true
		return false
	})
	for i := range m.front.buckets {
		for way := range ways {
			place := &m.front.buckets[i][way]
			e := place.entry.Load()
			if e == nil {
				if place.check.Load() != 0 {
					t.Error("the front puts in brief what it has let go")
				}
				continue
			}
			if n++; !held[e] {
				t.Errorf("the front answers %d, which Ristretto has let go", e.value)
			}
			if brief, ok := m.front.fits(place, e.print); ok && brief != m.brief(e) {
				t.Errorf("the front puts %d as %v", e.value, brief)
			}
		}
	}
	return n
}

// A front answers for nothing that is not in Ristretto, whoever writes, reads, removes and
// pushes others out at the same time; so its memory is bounded as Ristretto's is.
func TestTheFrontHoldsNothingElse(t *testing.T) {
	m := openSized(t, open(t, DiskOptions{Dir: Memory}), "front", Size{Entries: 100, Bytes: 1 << 20})
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 3000 {
				key := fmt.Sprint("key", rand.IntN(300))
				switch rand.IntN(8) {
				case 0:
					set(t, m, key, rand.IntN(1000))
				case 1:
					if err := m.Update(context.Background(), key, at(0), func(int, bool, int64) Edit[int] { return Remove[int]() }); err != nil {
						t.Error(err)
					}
				default:
					if _, _, _, err := m.Get(context.Background(), key, at(0)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done.Wait()
	if n := inFront(t, m); n == 0 {
		t.Error("it holds nothing at all")
	}
	m.hot.Clear()
	if n := inFront(t, m); n != 0 {
		t.Errorf("it holds %d of none", n)
	}
}

// What is read again is answered by the front, also what came in from the disk.
func TestTheFrontAnswers(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "front")
	const keys = 50 // among so many places
	for i := range keys {
		set(t, m, fmt.Sprint("key", i), i)
	}
	m.hot.Clear()
	for range 2 { // the first from the disk, the second from Ristretto
		for i := range keys {
			expect(t, m, fmt.Sprint("key", i), i)
		}
		m.hot.Wait()
	}
	if n := inFront(t, m); n != keys {
		t.Errorf("it answers for %d keys, want %d", n, keys)
	}
	set(t, m, "key1", 100)
	if e := m.front.find(m.front.print("key1")); e == nil || e.value != 100 {
		t.Errorf("after a write it has %+v", e)
	}
}

// What Ristretto let go before the front had it is not shown.
func TestShownTooLate(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "late")
	e := &Entry[int]{value: 1, expires: never, print: m.front.print("key")}
	if m.show("key", e) || m.front.find(e.print) != nil {
		t.Error("it is shown")
	}
}

// A map that was closed brings nothing forward, and does not ask Ristretto, which is closed
// at any time from then on.
func TestClosedBringsNothingForward(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "closed")
	set(t, m, "key", 1)
	m.hot.Wait()
	p := m.front.print("key")
	m.front.forget(p)
	hot := m.open.Load()
	m.Close()
	if m.bringForward("key", p); m.front.find(p) != nil {
		t.Error("it is shown")
	}
	runtime.KeepAlive(hot) // until here Ristretto is open
}

// What Ristretto has let go a moment ago, and the front has not yet, is gone with the write
// or the removal that comes in between.
func TestAWriteBeforeTheDrop(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "between")
	between := func(key string, happens func()) {
		set(t, m, key, 1)
		m.hot.Wait()
		expect(t, m, key, 1)
		old := m.front.find(m.front.print(key))
		m.hot.Del(key)
		m.front.put(old, m.brief(old))
		happens()
	}
	between("written", func() { set(t, m, "written", 2) })
	expect(t, m, "written", 2)
	between("removed", func() {
		s := m.stripe(m.front.print("removed"))
		s.Lock()
		defer s.Unlock()
		m.forget(s, "removed")
	})
	if n, found := m.Recall("removed", 0); found {
		t.Errorf("what was removed is %d", n)
	}
}

// A place whose check another has overwritten at the same time is found by nobody, and so an
// entry can have two. It is let go from both.
func TestAnEntryInTwoPlaces(t *testing.T) {
	for name, letGo := range map[string]func(f *front[int], e *Entry[int]){
		"drop":   func(f *front[int], e *Entry[int]) { f.drop(e) },
		"forget": func(f *front[int], e *Entry[int]) { f.forget(e.print) },
	} {
		f := newFront[int](100)
		e := &Entry[int]{print: f.print("key")}
		f.put(e, Brief{})
		for i := range f.buckets {
			for way := range ways {
				f.buckets[i][way].check.Add(1)
			}
		}
		if f.find(e.print) != nil {
			t.Fatal("it is found under another check")
		}
		f.put(e, Brief{})
		letGo(f, e)
		for i := range f.buckets {
			for way := range ways {
				if f.buckets[i][way].entry.Load() != nil {
					t.Errorf("%s: it is there still", name)
				}
			}
		}
	}
}

// Nearly all keys have a place, as each has the choice of two buckets: with one bucket each,
// an eighth would have none.
func TestNearlyAllHaveAPlace(t *testing.T) {
	const keys = 1 << 14
	f := newFront[int](keys)
	without := 0
	for i := range keys {
		e := &Entry[int]{print: f.print(fmt.Sprint("key", i))}
		if _, free := f.choose(e.print); free {
			f.put(e, Brief{})
		} else {
			without++
		}
	}
	if without > keys/18 {
		t.Errorf("%d of %d have none", without, keys)
	}
}

// More keys than there are places: all are found, and the places go to those that are
// asked for.
func TestAFullBucket(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "full")
	m.front.buckets = m.front.buckets[:1]
	const keys = 4 * ways
	for i := range keys {
		set(t, m, fmt.Sprint("key", i), i)
		m.hot.Wait()
		expect(t, m, fmt.Sprint("key", i), i)
	}
	for range 4000 { // a key that has no place gets one in 64 rounds, and half the time another's
		for i := range ways - 1 {
			expect(t, m, fmt.Sprint("key", i), i)
		}
	}
	for i := range ways - 1 {
		if m.front.find(m.front.print(fmt.Sprint("key", i))) == nil {
			t.Errorf("key%d has no place after so many reads", i)
		}
	}
	for i := range keys {
		expect(t, m, fmt.Sprint("key", i), i)
		set(t, m, fmt.Sprint("key", i), -i)
		expect(t, m, fmt.Sprint("key", i), -i)
	}
	inFront(t, m)
}
