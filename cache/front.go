package cache

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// A front answers for most of the keys that Ristretto holds, in a fraction of its time:
// a table that nobody locks. It holds no entry that Ristretto does not, so it needs no
// bound and no eviction of its own; a key that has no place in it is asked of Ristretto.
//
// Only who holds a key's stripe brings its entry in, and forgets the one before first. What
// Ristretto lets go is dropped, but not at once: until then it is still answered.
type front[V any] struct {
	buckets []bucket[V]
	first   maphash.Seed
	second  maphash.Seed
	secrets [2]uint64
}

const ways = 4

// A bucket is 128 bytes, which in all but small fronts are two lines of the processor's cache
// that lie side by side.
type bucket[V any] [ways]place[V]

// A place is for one key: its entry and, so that nobody has to wait for that to come from
// memory, what the codec has put in brief.
//
// One writer at a time has a place, and who finds it busy does without. A reader can meet what
// is half written. The check tells: it is the first half of the key's print, mixed with the
// brief, and so fits no other key and no other brief. Who does not fit is not found, and asked
// of Ristretto.
type place[V any] struct {
	entry atomic.Pointer[Entry[V]]
	check atomic.Uint64
	brief [2]atomic.Uint64
}

// busy is the check of a place that somebody writes. There is none, 0, where nothing is.
const busy = 1

// A print stands for a key, which is not kept. Nobody outside this process can look for
// two keys that share its secret bits: 128 of them or, where the brief alone is looked at,
// 64 and those that choose the bucket.
type print struct{ first, second uint64 }

// newFront makes one for so many keys, with five places for every four.
func newFront[V any](keys int64) *front[V] {
	return &front[V]{
		buckets: make([]bucket[V], (keys*5/4+ways)/ways),
		first:   maphash.MakeSeed(), second: maphash.MakeSeed(),
		secrets: [2]uint64{rand.Uint64(), rand.Uint64()},
	}
}

func (f *front[V]) print(key string) print {
	return print{maphash.String(f.first, key), maphash.String(f.second, key)}
}

// both are the buckets that a key can have its place in.
func (f *front[V]) both(p print) [2]*bucket[V] {
	n := uint64(len(f.buckets))
	return [2]*bucket[V]{&f.buckets[p.second<<32>>32*n>>32], &f.buckets[p.second>>32*n>>32]}
}

// check is what stands beside a key's brief.
func (f *front[V]) check(p print, b Brief) uint64 {
	high, low := bits.Mul64(b[0]^f.secrets[0], b[1]^f.secrets[1])
	return p.first ^ high ^ low
}

// fits reports whether a place is the key's, and what is there in brief.
func (f *front[V]) fits(at *place[V], p print) (b Brief, ok bool) {
	b = Brief{at.brief[0].Load(), at.brief[1].Load()}
	return b, at.check.Load() == f.check(p, b)
}

// holds is the entry that is there, if it is the key's.
func (at *place[V]) holds(p print) *Entry[V] {
	if e := at.entry.Load(); e != nil && e.print == p {
		return e
	}
	return nil
}

// find is the key's entry, nil if it has no place.
func (f *front[V]) find(p print) *Entry[V] {
	for _, b := range f.both(p) {
		for i := range b {
			if _, ok := f.fits(&b[i], p); ok {
				if e := b[i].holds(p); e != nil {
					return e
				}
			}
		}
	}
	return nil
}

// glance is what the key has in brief or, where that is nothing, what find would say.
func (f *front[V]) glance(p print) (Brief, *Entry[V]) {
	for _, b := range f.both(p) {
		for i := range b {
			if brief, ok := f.fits(&b[i], p); ok {
				if brief != (Brief{}) {
					return brief, nil
				}
				if e := b[i].holds(p); e != nil {
					return brief, e
				}
			}
		}
	}
	return Brief{}, nil
}

// wants reports whether to bring a key in. Where all places are taken one of them is given
// away now and then, so that those have them that are asked for most.
func (f *front[V]) wants(p print) bool {
	_, free := f.choose(p)
	return free || sometimes()
}

// choose is a place for the key that is free, or else any.
func (f *front[V]) choose(p print) (at *place[V], free bool) {
	both := f.both(p)
	for _, b := range both {
		for i := range b {
			if b[i].entry.Load() == nil {
				return &b[i], true
			}
		}
	}
	n := rand.IntN(2 * ways)
	return &both[n/ways][n%ways], false
}

// put brings an entry in, unless it is or its place is busy. Its key's stripe is held.
func (f *front[V]) put(e *Entry[V], b Brief) {
	if f.find(e.print) == e {
		return
	}
	at, _ := f.choose(e.print)
	if check := at.check.Load(); check == busy || !at.check.CompareAndSwap(check, busy) {
		return
	}
	at.entry.Store(e)
	at.brief[0].Store(b[0])
	at.brief[1].Store(b[1])
	at.check.Store(f.check(e.print, b))
}

// forget takes out what the key has.
func (f *front[V]) forget(p print) {
	for _, b := range f.both(p) {
		for i := range b {
			f.clear(&b[i], p, b[i].holds(p))
		}
	}
}

// drop takes out an entry; nil is none.
func (f *front[V]) drop(e *Entry[V]) {
	if e == nil {
		return
	}
	for _, b := range f.both(e.print) {
		for i := range b {
			f.clear(&b[i], e.print, e)
		}
	}
}

// clear takes out an entry of the key, nil is none, and what is there in brief: that can have
// come with another entry. It goes first, as a place without an entry is free. A check that has
// changed meanwhile is somebody else's.
func (f *front[V]) clear(at *place[V], p print, e *Entry[V]) {
	if b, ok := f.fits(at, p); ok {
		at.check.CompareAndSwap(f.check(p, b), 0)
	}
	if e != nil {
		at.entry.CompareAndSwap(e, nil)
	}
}

// sometimes is 1 in 64.
func sometimes() bool { return rand.Uint32()&63 == 0 }
