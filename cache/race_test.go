package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The hazards of Ristretto, one by one: it queues, drops, rejects and evicts. Each
// of these tests counts up under a key and asks whether anybody ever sees a count
// older than one that was already acknowledged.

// A counter is a key, what Updates of it have returned with, and how a reader checks.
type counter struct {
	key          string
	acknowledged atomic.Int64
}

func (c *counter) increment(m *Map[int]) error {
	var next int
	err := m.Update(context.Background(), c.key, at(0), func(n int, _ bool, _ int64) Edit[int] {
		next = n + 1
		return Put(next, never)
	})
	if err == nil {
		raise(&c.acknowledged, int64(next))
	}
	return err
}

// raise never lowers, for two writers may come back in another order.
func raise(to *atomic.Int64, n int64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

func (c *counter) check(t *testing.T, m *Map[int]) error {
	least := c.acknowledged.Load()
	if n, found := glance(t, m, c.key, 0); found && int64(n) < least {
		return fmt.Errorf("%s: glanced at %d after %d was acknowledged", c.key, n, least)
	}
	n, _, _, err := m.Get(context.Background(), c.key, at(0))
	if err == nil && int64(n) < least {
		return fmt.Errorf("%s: read %d after %d was acknowledged", c.key, n, least)
	}
	return err
}

// Few keys, many goroutines and a memory that holds fewer than there are.
func TestReadersNeverSeeAnOldValue(t *testing.T) {
	for name, size := range map[string]Size{
		"nothing fits":  {Entries: 1, Bytes: 1},
		"one fits":      {Entries: 1, Bytes: 1000},
		"half fit":      {Entries: 8, Bytes: 1 << 20},
		"everything":    roomy,
		"by their size": tiny,
	} {
		t.Run(name, func(t *testing.T) {
			m := openSized(t, open(t, DiskOptions{Dir: Memory}), "race", size)
			counters := make([]counter, 16)
			for i := range counters {
				counters[i].key = fmt.Sprint("key", i)
			}
			steps := 1500
			if testing.Short() {
				steps = 400
			}
			var done sync.WaitGroup
			for range 16 {
				done.Go(func() {
					for range steps {
						c := &counters[rand.IntN(len(counters))]
						err := c.check(t, m)
						if rand.IntN(3) == 0 {
							err = errors.Join(err, c.increment(m), c.check(t, m))
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			done.Wait()
			for i := range counters {
				expect(t, m, counters[i].key, int(counters[i].acknowledged.Load()))
			}
		})
	}
}

// A removal is seen at once as well: who removes and puts in turn finds what it left,
// whatever the readers and the other keys of the stripe are at.
func TestRemovedStaysRemoved(t *testing.T) {
	m := openSized(t, open(t, DiskOptions{Dir: Memory}), "removed", tiny)
	var done sync.WaitGroup
	for owner := range 8 {
		done.Go(func() {
			key := fmt.Sprint("key", owner)
			for i := 1; i < 1000 && !t.Failed(); i++ {
				edit := Put(i, never)
				if i%3 == 0 {
					edit = Remove[int]()
				}
				err := m.Update(context.Background(), key, at(0), func(int, bool, int64) Edit[int] { return edit })
				if n, found := glance(t, m, key, 0); found && (i%3 == 0 || n != i) {
					t.Errorf("%s after edit %d: %d at a glance", key, i, n)
				}
				n, found, _, getErr := m.Get(context.Background(), key, at(0))
				if err != nil || getErr != nil || found != (i%3 != 0) || found && n != i {
					t.Errorf("%s after edit %d: %d, %t, %v, %v", key, i, n, found, err, getErr)
				}
				_, _, _, _ = m.Get(context.Background(), fmt.Sprint("key", (owner+1)%8), at(0))
			}
		})
	}
	done.Wait()
}

// Two Sets of a new key in a row: Ristretto itself would keep the first.
func TestTwoPutsOfANewKey(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "two")
	for i := range 3000 {
		key := fmt.Sprint("key", i)
		set(t, m, key, 1)
		set(t, m, key, 2)
		expect(t, m, key, 2)
		m.hot.Wait()
		expect(t, m, key, 2)
	}
}

// Puts and removals of a new key in a row, then the queue is worked off: what was
// queued first must not come up again.
func TestQueuedSetsDoNotComeBack(t *testing.T) {
	m := openSized(t, open(t, DiskOptions{Dir: Memory}), "queued", Size{Entries: 50, Bytes: 1 << 20})
	for i := range 2000 {
		key := fmt.Sprint("key", i)
		set(t, m, key, 1)
		if err := m.Update(context.Background(), key, at(0), func(int, bool, int64) Edit[int] { return Remove[int]() }); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			set(t, m, key, 3)
		}
		m.hot.Wait()
		if i%2 == 0 {
			expect(t, m, key, 3)
		} else {
			expectAbsent(t, m, key)
		}
	}
}

// More writers than Ristretto's queue is long, all at once and all with new keys:
// most Sets are dropped, and no value is lost or old.
func TestMoreWritersThanTheQueueHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("make flood has it")
	}
	const writers = 33_000
	m := openSized(t, open(t, DiskOptions{Dir: Memory}), "writers", Size{Entries: 1000, Bytes: 1 << 30})
	counters := make([]counter, writers)
	var done sync.WaitGroup
	ready := make(chan struct{})
	for i := range counters {
		c := &counters[i]
		c.key = fmt.Sprint("key", i)
		done.Go(func() {
			<-ready
			if err := errors.Join(c.increment(m), c.check(t, m)); err != nil {
				t.Error(err)
			}
		})
	}
	close(ready)
	done.Wait()
	for i := range counters {
		expect(t, m, counters[i].key, 1)
	}
}

// A Set that Ristretto has no place for in its queue: the worker is held up until
// the queue is full.
func TestDroppedSets(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "dropped")
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.codec = slowCodec{numbers{}, func() { once.Do(func() { close(held); <-release }) }}
	set(t, m, "first", 1)
	<-held
	const queue = 32 * 1024
	for i := range queue {
		m.hot.Set(fmt.Sprint("filler", i), new(Entry[int]), 1)
	}
	key := "new"
	stripe := func(key string) *stripe[int] { return m.stripe(m.front.print(key)) }
	for stripe(key) == stripe("first") {
		key += "er" // or it would wait for the first
	}
	set(t, m, key, 1)
	set(t, m, key, 2)
	expect(t, m, key, 2)
	close(release)
	m.hot.Wait()
	expect(t, m, "first", 1)
	expect(t, m, key, 2)
}

// slowCodec lets a test into Ristretto's worker, which asks for each value's weight.
type slowCodec struct {
	numbers
	hook func()
}

func (c slowCodec) Weigh(n int) int {
	c.hook()
	return c.numbers.Weigh(n)
}

// Callers that are inside when a map and its disk are closed get an answer or
// ErrClosed, nothing panics, nothing acknowledged is lost and no goroutine stays.
func TestCloseUnderLoad(t *testing.T) {
	before := runtime.NumGoroutine()
	for round := range 8 {
		dir := t.TempDir()
		d, err := Open(DiskOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMap[int](d, "close", numbers{}, tiny)
		if err != nil {
			t.Fatal(err)
		}
		counters := make([]counter, 32)
		inside, done := useUntilClosed(t, m, counters)
		<-inside
		if round%2 == 0 {
			m.Close()
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		m.Close()
		done.Wait()
		compare(t, dir, counters)
	}
	awaitGone(t, before)
}

// awaitGone returns when no more goroutines are left than there were before: when what
// was closed has been given back.
func awaitGone(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		runtime.GC() // knows when the last reader has left
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// useUntilClosed reads and writes until ErrClosed. It says when every caller has been
// in.
func useUntilClosed(t *testing.T, m *Map[int], counters []counter) (inside chan struct{}, done *sync.WaitGroup) {
	inside, done = make(chan struct{}), new(sync.WaitGroup)
	var entered sync.WaitGroup
	entered.Add(len(counters))
	for i := range counters {
		c := &counters[i]
		c.key = fmt.Sprint("key", i)
		done.Go(func() {
			for n := 0; ; n++ {
				err := c.increment(m)
				if err == nil {
					err = c.check(t, m)
				}
				if n == 0 {
					entered.Done()
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() { entered.Wait(); close(inside) }()
	return inside, done
}

func compare(t *testing.T, dir string, counters []counter) {
	t.Helper()
	d, err := Open(DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMap[int](d, "close", numbers{}, roomy)
	if err != nil {
		t.Fatal(err)
	}
	for i := range counters {
		n, _, _, err := m.Get(context.Background(), counters[i].key, at(0))
		if least := counters[i].acknowledged.Load(); err != nil || int64(n) < least {
			t.Errorf("%s: %d, %v; %d was acknowledged", counters[i].key, n, err, least)
		}
	}
	m.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Close may be called by several at once, and all of them wait for those inside.
func TestCloseWaits(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "wait")
	stripe := func(key string) *stripe[int] { return m.stripe(m.front.print(key)) }
	other := "other"
	for stripe(other) == stripe("key") {
		other += "er" // or it would wait for the first
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	var left atomic.Bool
	go func() {
		_ = m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] {
			close(inside)
			<-leave
			left.Store(true)
			return Keep[int]()
		})
	}()
	<-inside
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			m.Close()
			if !left.Load() {
				t.Error("Close did not wait")
			}
		})
	}
	for m.Update(context.Background(), other, at(0), func(int, bool, int64) Edit[int] { return Keep[int]() }) == nil {
		runtime.Gosched() // until Close lets nobody in any more
	}
	close(leave)
	done.Wait()
}
