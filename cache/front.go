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
// Only who holds a key's stripe brings its entry in. Ristretto has it taken out when it lets
// it go or takes another in its place.
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
	entries [ways]atomic.Pointer[entry[V]]
	tags    [ways]atomic.Uint32
	_       uint32
}

// A print stands for a key, which is not kept. Nobody outside this process can look for
// two keys that share 128 secret bits.
type print struct{ first, second uint64 }

func (p print) tag() uint32 { return uint32(p.first >> 32) }

// newFront makes one for so many keys, of which about 1 in 20 has no place.
func newFront[V any](keys int64) *front[V] {
	return &front[V]{
		buckets: make([]bucket[V], 1<<bits.Len64(uint64(keys-1)/4)),
		first:   maphash.MakeSeed(), second: maphash.MakeSeed(),
	}
}

func (f *front[V]) print(key string) print {
	return print{maphash.String(f.first, key), maphash.String(f.second, key)}
}

func (f *front[V]) bucket(p print) *bucket[V] {
	return &f.buckets[p.first&uint64(len(f.buckets)-1)]
}

// find is the key's entry, nil if it has no place.
func (f *front[V]) find(p print) *entry[V] {
	b := f.bucket(p)
	for i := range b.tags {
		if b.tags[i].Load() == p.tag() {
			if e := b.entries[i].Load(); e != nil && e.print == p {
				return e
			}
		}
	}
	return nil
}

// wants reports whether to bring a key in. Where all places are taken one of them is given
// away now and then, so that those have them that are asked for most.
func (f *front[V]) wants(p print) bool {
	_, free := f.bucket(p).place()
	return free || sometimes()
}

// place is a free way, or else any.
func (b *bucket[V]) place() (way int, free bool) {
	for i := range b.entries {
		if b.entries[i].Load() == nil {
			return i, true
		}
	}
	return rand.IntN(ways), false
}

// put brings an entry in. Its key's stripe is held.
func (f *front[V]) put(e *entry[V]) {
	b := f.bucket(e.print)
	b.forget(e.print)
	way, _ := b.place()
	b.tags[way].Store(e.print.tag())
	b.entries[way].Store(e)
}

// forget takes out what the key has.
func (b *bucket[V]) forget(p print) {
	for i := range b.entries {
		if e := b.entries[i].Load(); e != nil && e.print == p {
			b.entries[i].CompareAndSwap(e, nil)
		}
	}
}

// drop takes out this entry; nil is none.
func (f *front[V]) drop(e *entry[V]) {
	if e == nil {
		return
	}
	b := f.bucket(e.print)
	for i := range b.entries {
		b.entries[i].CompareAndSwap(e, nil)
	}
}

// sometimes is 1 in 8.
func sometimes() bool { return rand.Uint32()&7 == 0 }
