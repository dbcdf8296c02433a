package memory

import (
	"math/bits"
	"sync/atomic"
)

// An index finds the entries of a shard: in the slot that the first hash of its key says, or
// else in one of the next, and none between the two is free. There is a power of two of
// them. What is looked at is as a rule one slot and the entry itself: a slot tells most
// other keys' entries by a tag, and is so small that those of a hundred thousand keys lie in
// a processor's cache.
//
// It is changed with the shard's lock held. Who does not hold that may seek meanwhile, and
// finds an entry that has to say itself whose it is, or none.
type index[S any] struct {
	slots  []atomic.Uint32
	blocks []atomic.Pointer[block[S]]
	taken  []uint8  // of each block, a bit for each entry
	roomy  []uint32 // the blocks that are filled next, from the last on
	empty  []uint32 // and those after them
}

// A block is the memory of some entries. It is there while one of them is, and what is added
// comes into one that is there, if it can.
type block[S any] [perBlock]entry[S]

// Seven entries of a Limiter fit well into a piece of memory that the runtime hands out, with the
// word that it adds; of the piece for eight a seventh would lie idle.
const (
	perBlock = 7
	full     = 1<<perBlock - 1
)

// A slot has a tag, which is part of the first hash, and where the entry is, from 1 on. It is
// 0 where it is free.
const (
	tagBits = 8
	tag     = (1<<tagBits - 1) << (32 - tagBits)
)

// mostKeys is how many keys there can be in all shards: half of what the slots of each could
// tell, as some get more than others.
const mostKeys = shards * (1 << (32 - tagBits) / 2)

// newIndex has so many slots, and room for three entries in four of them, or somewhat fewer.
func newIndex[S any](slots int) *index[S] {
	blocks := slots * 3 / 4 / perBlock
	x := &index[S]{
		slots:  make([]atomic.Uint32, slots),
		blocks: make([]atomic.Pointer[block[S]], blocks),
		taken:  make([]uint8, blocks),
		empty:  make([]uint32, blocks),
	}
	for n := range x.empty {
		x.empty[n] = uint32(blocks - 1 - n)
	}
	return x
}

// withRoom is the index if it has room for one more entry, or else a larger one with the
// same entries.
func (x *index[S]) withRoom() *index[S] {
	switch {
	case x == nil:
		return newIndex[S](16)
	case len(x.roomy)+len(x.empty) > 0:
		return x
	}
	next := newIndex[S](2 * len(x.slots))
	next.empty = next.empty[:len(next.blocks)-len(x.blocks)]
	copy(next.taken, x.taken)
	for n := range x.blocks {
		full := x.blocks[n].Load()
		next.blocks[n].Store(full)
		for i := range full {
			next.put(&full[i])
		}
	}
	return next
}

// home is the slot where a key of this hash is looked for first. The last bits of the hash
// are the same in all of a shard.
func (x *index[S]) home(hash uint64) int { return int(hash/shards) & (len(x.slots) - 1) }

// after is the next slot; the first comes after the last.
func (x *index[S]) after(i int) int { return (i + 1) & (len(x.slots) - 1) }

// find is the key's entry, nil if it has none.
func (x *index[S]) find(k fingerprint) *entry[S] {
	if x == nil {
		return nil
	}
	e, i := x.seek(k.first, x.home(k.first))
	for e != nil && !e.is(k) {
		e, i = x.seek(k.first, i)
	}
	return e
}

// seek is the entry of the first slot from i on that has the tag of this hash, and the slot
// behind that; nil if there is none.
func (x *index[S]) seek(hash uint64, i int) (*entry[S], int) {
	for {
		s := x.slots[i].Load()
		i = x.after(i)
		if s == 0 || s&tag == tagOf(hash) {
			return x.at(s), i
		}
	}
}

func tagOf(hash uint64) uint32 { return uint32(hash>>32) & tag }

// slot is what stands in the slot of an entry.
func (e *entry[S]) slot() uint32 { return tagOf(e.first) | e.spot }

// at is the entry that a slot stands for; nil if it is free, or somebody has meanwhile let
// the block go.
func (x *index[S]) at(slot uint32) *entry[S] {
	if slot == 0 {
		return nil
	}
	spot := slot&^tag - 1
	b := x.blocks[spot/perBlock].Load()
	if b == nil {
		return nil
	}
	return &b[spot%perBlock]
}

// add makes an entry in an index that has room, and locks it before anybody can find it.
func (x *index[S]) add(k fingerprint) *entry[S] {
	n := x.next()
	if x.taken[n] == 0 {
		x.blocks[n].Store(new(block[S]))
	}
	i := bits.TrailingZeros8(^x.taken[n])
	x.taken[n] |= 1 << i
	if x.taken[n] == full {
		x.roomy = x.roomy[:len(x.roomy)-1]
	}
	e := &x.blocks[n].Load()[i]
	e.Lock()
	e.fingerprint, e.spot, e.place = k, 1+n*perBlock+uint32(i), nowhere
	x.put(e)
	return e
}

// next is the block that is filled next: it has room, and is not empty if another has some.
func (x *index[S]) next() uint32 {
	for last := len(x.roomy) - 1; last >= 0; last-- {
		n := x.roomy[last]
		if x.taken[n] != 0 {
			return n
		}
		x.roomy, x.empty = x.roomy[:last], append(x.empty, n) // emptied since
	}
	last := len(x.empty) - 1
	x.roomy, x.empty = append(x.roomy, x.empty[last]), x.empty[:last]
	return x.roomy[0]
}

func (x *index[S]) put(e *entry[S]) {
	i := x.home(e.first)
	for x.slots[i].Load() != 0 {
		i = x.after(i)
	}
	x.slots[i].Store(e.slot())
}

// remove takes an entry out that is there. Its memory is for another.
func (x *index[S]) remove(e *entry[S]) {
	x.free(e)
	n, bit := (e.spot-1)/perBlock, uint8(1)<<((e.spot-1)%perBlock)
	e.fingerprint = fingerprint{}
	if x.taken[n] == full {
		x.roomy = append(x.roomy, n)
	}
	if x.taken[n] &^= bit; x.taken[n] == 0 {
		x.blocks[n].Store(nil)
	}
}

// free frees the slot of an entry. Those behind it move up, where they would not be found
// any more across the gap.
func (x *index[S]) free(e *entry[S]) {
	gap := x.home(e.first)
	for x.slots[gap].Load() != e.slot() {
		gap = x.after(gap)
	}
	last := len(x.slots) - 1
	for i := x.after(gap); x.slots[i].Load() != 0; i = x.after(i) {
		s := x.slots[i].Load()
		if (i-x.home(x.at(s).first))&last >= (i-gap)&last {
			x.slots[gap].Store(s)
			gap = i
		}
	}
	x.slots[gap].Store(0)
}
