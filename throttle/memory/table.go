package memory

import (
	"container/heap"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// ErrFull is the cause of a Take that failed because Options.Keys other keys are on
// record and all still count. It comes wrapped, with throttle.ErrUnavailable.
var ErrFull = errors.New("as many keys as there is room for still count")

// shards is a power of two. Each has a lock of its own, so many that two callers seldom
// meet at one.
const shards = 256

// sweeps is how many expired entries an insertion removes at most: more than it adds, so
// that the expired become fewer.
const sweeps = 2

// A table keeps a state S for each of a bounded number of keys, until it expires.
type table[S any] struct {
	first, second maphash.Seed
	most          int64
	now           func() int64
	until         func(*S) int64 // when a state says nothing any more, as far as is known yet
	shards        [shards]shard[S]
	kept          atomic.Int64 // entries, and places promised to some
	full          sync.Mutex   // of who needs the place of another
}

// A shard is the entries of which the first hashes end alike. It is as long as a line of
// the processor's cache, so that no two shards' locks are in one.
type shard[S any] struct {
	sync.Mutex
	slots slots[S]
	due   queue[S]
	swept int64 // the latest clock that something was removed by
}

// A fingerprint stands for a key; the key itself is not kept. Nobody outside this process
// can look for two keys that share 128 secret bits.
type fingerprint struct{ first, second uint64 }

// An entry is what is kept of one key. All of it is changed with the shard's lock held.
// The state comes early: what a denial looks at is then in one line of the processor's
// cache.
type entry[S any] struct {
	second uint64 // of its fingerprint
	state  S
	first  uint64
	due    int64 // when to look whether it has expired: when it does, or earlier
	place  int   // in the queue, or added
	_      int64 // fills the lines: of a shorter one the state could lie across two
}

// added is the place of an entry that is not in the queue yet.
const added = -1

func newTable[S any](o Options, until func(*S) int64) *table[S] {
	return &table[S]{first: maphash.MakeSeed(), second: maphash.MakeSeed(), most: int64(o.Keys), now: o.Now, until: until}
}

func (t *table[S]) fingerprint(key string) fingerprint {
	return fingerprint{maphash.String(t.first, key), maphash.String(t.second, key)}
}

// lock returns the key's shard, locked, its entry, nil if there is none, and the clock.
func (t *table[S]) lock(key string) (s *shard[S], e *entry[S], now int64) {
	return t.lockOf(t.fingerprint(key))
}

// lockOf is lock. The clock is read before the shard is locked, as that takes as long as
// all that is done inside. Where somebody has meanwhile swept by a later one it is read
// again: what had expired by then is gone, and must not be missed at an older clock.
func (t *table[S]) lockOf(k fingerprint) (s *shard[S], e *entry[S], now int64) {
	s = &t.shards[k.first%shards]
	now = t.now()
	s.Lock()
	if now < s.swept {
		now = t.now()
	}
	return s, s.slots.find(k), now
}

// lockOrAdd is lock, and makes an entry with a zero state where there is none. Its caller
// keeps that before unlocking, as the first send of a key is always admitted. After an
// error nothing is locked.
func (t *table[S]) lockOrAdd(key string) (s *shard[S], e *entry[S], now int64, err error) {
	k := t.fingerprint(key)
	if s, e, now = t.lockOf(k); e != nil {
		return s, e, now, nil
	}
	if t.reserve() {
		return s, t.add(s, k, now), now, nil
	}
	s.Unlock() // one lock at a time, or two callers could wait for each other
	return t.lockOrReplace(k)
}

// lockOrReplace is lockOrAdd in a full table. One caller at a time is here: of many who
// bring one new key the first makes room, and the others find it.
func (t *table[S]) lockOrReplace(k fingerprint) (s *shard[S], e *entry[S], now int64, err error) {
	t.full.Lock()
	defer t.full.Unlock()
	if s, e, now = t.lockOf(k); e != nil {
		return s, e, now, nil
	}
	s.Unlock()
	if !t.makeRoom() {
		return nil, nil, 0, ErrFull
	}
	if s, e, now = t.lockOf(k); e != nil {
		t.kept.Add(-1) // somebody was faster, who had found a place free
		return s, e, now, nil
	}
	return s, t.add(s, k, now), now, nil
}

// add makes an entry, for which there is a place.
func (t *table[S]) add(s *shard[S], k fingerprint, now int64) *entry[S] {
	for range sweeps {
		if !t.sweep(s, now) {
			break
		}
		t.kept.Add(-1)
	}
	return s.add(k)
}

// reserve promises a place, if there is one.
func (t *table[S]) reserve() bool {
	for {
		kept := t.kept.Load()
		if kept >= t.most {
			return false
		}
		if t.kept.CompareAndSwap(kept, kept+1) {
			return true
		}
	}
}

// makeRoom looks for an entry that has expired, wherever it is, and promises its place.
func (t *table[S]) makeRoom() bool {
	now := t.now()
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		swept := t.sweep(s, now)
		s.Unlock()
		if swept {
			return true
		}
	}
	return t.reserve() // one may have been given back meanwhile
}

// sweep removes an entry of the shard that has expired, if there is one. Its place stays
// promised. When one expires is asked anew: a view that was made since may count it for
// longer.
func (t *table[S]) sweep(s *shard[S], now int64) bool {
	for len(s.due) > 0 && s.due[0].due <= now {
		e := s.due[0]
		until := t.until(&e.state)
		if until <= now {
			s.swept = max(s.swept, now)
			s.remove(e)
			return true
		}
		e.due = until
		heap.Fix(&s.due, 0)
	}
	return false
}

// forget removes an entry.
func (t *table[S]) forget(s *shard[S], e *entry[S]) {
	s.remove(e)
	t.kept.Add(-1)
}

// add makes an entry. All the others are in the queue.
func (s *shard[S]) add(k fingerprint) *entry[S] {
	e := &entry[S]{first: k.first, second: k.second, place: added}
	s.slots = s.slots.with(e, len(s.due))
	return e
}

// keep keeps an entry until its state says nothing any more.
func (t *table[S]) keep(s *shard[S], e *entry[S]) { s.keep(e, t.until(&e.state)) }

// keep says until when the entry counts.
func (s *shard[S]) keep(e *entry[S], until int64) {
	switch {
	case e.place == added:
		e.due = until
		heap.Push(&s.due, e)
	case until < e.due:
		e.due = until
		heap.Fix(&s.due, e.place)
	}
	// Where it counts for longer now, when it is due is soon enough to see that: so an
	// admission does not move it in the queue.
}

func (s *shard[S]) remove(e *entry[S]) {
	heap.Remove(&s.due, e.place)
	s.slots.remove(e)
}
