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
}

const ways = 5

// A bucket is one line of the processor's cache. A tag and its entry may be of two keys
// for a moment, or until the next comes, as two stripes can write at once: whoever is not
// found then is found by Ristretto.
type bucket[V any] struct {
	entries [ways]atomic.Pointer[Entry[V]]
	tags    [ways]atomic.Uint32
	_       uint32
}

// A print stands for a key, which is not kept. Nobody outside this process can look for
// two keys that share 128 secret bits.
type print struct{ first, second uint64 }

func (p print) tag() uint32 { return uint32(p.first >> 32) }

// newFront makes one for so many keys, with 1.2 to 2.5 places for each.
func newFront[V any](keys int64) *front[V] {
	return &front[V]{
		buckets: make([]bucket[V], 1<<bits.Len64(uint64(keys-1)/4)),
		first:   maphash.MakeSeed(), second: maphash.MakeSeed(),
	}
}

func (f *front[V]) print(key string) print {
	return print{maphash.String(f.first, key), maphash.String(f.second, key)}
}

// both are the buckets that a key can have its place in.
func (f *front[V]) both(p print) [2]*bucket[V] {
	last := uint64(len(f.buckets) - 1)
	return [2]*bucket[V]{&f.buckets[p.first&last], &f.buckets[p.second>>32&last]}
}

// find is the key's entry, nil if it has no place.
func (f *front[V]) find(p print) *Entry[V] {
	for _, b := range f.both(p) {
		for i := range b.tags {
			if b.tags[i].Load() == p.tag() {
				if e := b.entries[i].Load(); e != nil && e.print == p {
					return e
				}
			}
		}
	}
	return nil
}

// wants reports whether to bring a key in. Where all places are taken one of them is given
// away now and then, so that those have them that are asked for most.
func (f *front[V]) wants(p print) bool {
	_, _, free := f.place(p)
	return free || sometimes()
}

// place is a free one for the key, or else any.
func (f *front[V]) place(p print) (b *bucket[V], way int, free bool) {
	both := f.both(p)
	for _, b := range both {
		for i := range b.entries {
			if b.entries[i].Load() == nil {
				return b, i, true
			}
		}
	}
	n := rand.IntN(2 * ways)
	return both[n/ways], n % ways, false
}

// put brings an entry in, unless it is. Its key's stripe is held.
func (f *front[V]) put(e *Entry[V]) {
	if f.find(e.print) == e {
		return
	}
	b, way, _ := f.place(e.print)
	b.tags[way].Store(e.print.tag())
	b.entries[way].Store(e)
}

// forget takes out what the key has.
func (f *front[V]) forget(p print) {
	for _, b := range f.both(p) {
		for i := range b.entries {
			if e := b.entries[i].Load(); e != nil && e.print == p {
				b.entries[i].CompareAndSwap(e, nil)
			}
		}
	}
}

// drop takes out an entry; nil is none.
func (f *front[V]) drop(e *Entry[V]) {
	if e == nil {
		return
	}
	for _, b := range f.both(e.print) {
		for i := range b.entries {
			b.entries[i].CompareAndSwap(e, nil)
		}
	}
}

// sometimes is 1 in 64.
func sometimes() bool { return rand.Uint32()&63 == 0 }
