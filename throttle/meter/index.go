package meter

import "github.com/mailgate/mailgate/throttle"

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
	ids   throttle.ManyIDs
	added int // ids, those that have gone again included
}

// begin moves the admissions to the beginning of the index's memory, or of another's with
// more, so that as many again have room, and forgets the ids of all others. x may be nil.
func (x *index) begin(held throttle.History) (*index, throttle.History) {
	if x == nil || cap(x.room) < 2*len(held) {
		x = newIndex(2 * len(held))
	} else {
		clear(x.ids)
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
	return &index{room: make(throttle.History, 0, admissions), ids: throttle.NewManyIDs(admissions / 2)}
}

func (x *index) add(id throttle.ID) {
	x.ids.Add(id)
	x.added++
}

// full reports whether as many ids were added as there is room for. Where sends are given
// back their ids stay, and more would make it say yes to any.
func (x *index) full() bool { return x != nil && x.added >= cap(x.room) }
