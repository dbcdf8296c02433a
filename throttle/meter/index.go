package meter

import (
	"math/bits"

	"github.com/mailgate/mailgate/throttle"
)

// many is from how many admissions on an index is worth its memory.
const many = 64

// few is below how many it is not kept any more.
const few = 8

// An index makes two things quick that would otherwise take as long as there are
// admissions: to see that an id is not among them, as is so with nearly every one that
// is asked for, and to forget the oldest. It is a Bloom filter, and the memory that the
// admissions move forward in until they are moved back to its beginning.
type index struct {
	room  throttle.History
	words []throttle.IDs // a power of two of them
	added int            // ids, those that have gone again included
}

// begin moves the admissions to the beginning of the index's memory, or of another's with
// more, so that as many again have room, and forgets the ids of all others. x may be nil.
func (x *index) begin(held throttle.History) (*index, throttle.History) {
	if x == nil || cap(x.room) < 2*len(held) {
		x = newIndex(2 * len(held))
	} else {
		clear(x.words)
		x.added = 0
	}
	held = x.room[:copy(x.room[:len(held)], held)]
	for i := range held {
		x.add(held[i].ID)
	}
	return x, held
}

// newIndex has room for so many admissions, and 32 to 64 bits for each: so of a thousand ids
// that are not among them five have to be looked for when it is full, and fewer before.
func newIndex(admissions int) *index {
	words := 1 << bits.Len(uint(admissions/2-1))
	return &index{room: make(throttle.History, 0, admissions), words: make([]throttle.IDs, words)}
}

// mayHold says no only of an id that was not added.
func (x *index) mayHold(id throttle.ID) bool {
	return x.word(id).MayHave(id)
}

func (x *index) add(id throttle.ID) {
	x.word(id).Add(id)
	x.added++
}

// full reports whether as many ids were added as there is room for. Where sends are given
// back their ids stay, and more would make it say yes to any.
func (x *index) full() bool { return x != nil && x.added >= cap(x.room) }

// word is the one of the id. Which bits it is in there, other bits of its hash say.
func (x *index) word(id throttle.ID) *throttle.IDs {
	return &x.words[int(id.Hash()>>12)&(len(x.words)-1)]
}
