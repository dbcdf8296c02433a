package memory

import (
	"container/heap"
	"errors"
	"hash/maphash"
	"strings"
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
	seed   maphash.Seed
	most   int64
	now    func() int64
	kept   atomic.Int64 // entries, and places promised to some
	shards [shards]shard[S]
}

// A shard is the entries of which the hashes end alike.
type shard[S any] struct {
	sync.Mutex
	byHash map[uint64]*entry[S]
	due    queue[S]
	_      [24]byte // so that two shards' locks are not in one line of the processor's cache
}

// An entry is what is kept of one key. All of it is changed with the shard's lock held.
type entry[S any] struct {
	key   string
	hash  uint64
	next  *entry[S] // another key of the same hash
	state S
	until int64 // when the state says nothing any more
	due   int64 // when to look whether it has expired: until, or earlier
	place int   // in the queue, or added
}

// added is the place of an entry that is not in the queue yet.
const added = -1

func newTable[S any](o Options) *table[S] {
	t := &table[S]{seed: maphash.MakeSeed(), most: int64(o.Keys), now: o.Now}
	for i := range t.shards {
		t.shards[i].byHash = map[uint64]*entry[S]{}
	}
	return t
}

// lock returns the key's shard, locked, its entry, nil if there is none, and the clock.
// That is read when the shard is locked, so that nobody who had to wait decides by an
// older one than those before, who may have swept what had expired.
func (t *table[S]) lock(key string) (s *shard[S], e *entry[S], now int64) {
	hash := maphash.String(t.seed, key)
	s = &t.shards[hash%shards]
	s.Lock()
	return s, s.find(hash, key), t.now()
}

// lockOrAdd is lock, and makes an entry with a zero state where there is none. Its caller
// keeps that before unlocking, as the first send of a key is always admitted. After an
// error nothing is locked.
func (t *table[S]) lockOrAdd(key string) (s *shard[S], e *entry[S], now int64, err error) {
	s, e, now = t.lock(key)
	if e != nil {
		return s, e, now, nil
	}
	if !t.reserve() {
		s.Unlock() // one lock at a time, or two callers could wait for each other
		if !t.makeRoom() {
			return nil, nil, 0, ErrFull
		}
		if s, e, now = t.lock(key); e != nil {
			t.kept.Add(-1) // somebody else was faster
			return s, e, now, nil
		}
	}
	for range sweeps {
		if !t.sweep(s, now) {
			break
		}
		t.kept.Add(-1)
	}
	return s, s.add(maphash.String(t.seed, key), strings.Clone(key)), now, nil
}

// reserve promises a place, if there is one.
func (t *table[S]) reserve() bool {
	if t.kept.Add(1) <= t.most {
		return true
	}
	t.kept.Add(-1)
	return false
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
// promised.
func (t *table[S]) sweep(s *shard[S], now int64) bool {
	for len(s.due) > 0 && s.due[0].due <= now {
		e := s.due[0]
		if e.until <= now {
			s.remove(e)
			return true
		}
		e.due = e.until
		heap.Fix(&s.due, 0)
	}
	return false
}

// forget removes an entry.
func (t *table[S]) forget(s *shard[S], e *entry[S]) {
	s.remove(e)
	t.kept.Add(-1)
}

func (s *shard[S]) find(hash uint64, key string) *entry[S] {
	e := s.byHash[hash]
	for e != nil && e.key != key {
		e = e.next
	}
	return e
}

func (s *shard[S]) add(hash uint64, key string) *entry[S] {
	e := &entry[S]{key: key, hash: hash, next: s.byHash[hash], place: added}
	s.byHash[hash] = e
	return e
}

// keep says until when the entry counts.
func (s *shard[S]) keep(e *entry[S], until int64) {
	e.until = until
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
	if first := s.byHash[e.hash]; first != e {
		for first.next != e {
			first = first.next
		}
		first.next = e.next
		return
	}
	if e.next == nil {
		delete(s.byHash, e.hash)
		return
	}
	s.byHash[e.hash] = e.next
}
