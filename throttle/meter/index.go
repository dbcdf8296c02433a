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
//
// Who adds one writes to the room and the filter, and only reads what says where they are: so
// processor cores that admit for one key in turns have one line of memory less to hand over.
type index struct {
	room  throttle.History
	ids   throttle.ManyIDs
	stale int // ids of admissions that have gone and left their places to others
}

// begin moves the admissions to the beginning of the index's memory, or of another's with
// more, so that as many again have room, and forgets the ids of all others. x may be nil.
func (x *index) begin(held throttle.History) (*index, throttle.History) {
	if x == nil || cap(x.room) < 2*len(held) {
		x = newIndex(2 * len(held))
	} else {
		clear(x.ids)
		x.stale = 0
	}
	held = x.room[:copy(x.room[:len(held)], held)]
	for i := range held {
		x.ids.Add(held[i].ID)
	}
	return x, held
}

// newIndex has room for so many admissions, and 32 to 64 bits for each: so of a thousand ids
// that are not among them five have to be looked for when it is full, and fewer before.
func newIndex(admissions int) *index {
	return &index{room: make(throttle.History, 0, admissions), ids: throttle.NewManyIDs(admissions / 2)}
}

// full reports whether one more has to begin anew, or begin where x is nil: as many ids were
// added as there is room for. Where sends are given back their ids stay, and more would make the
// filter say yes to any.
func (x *index) full(held throttle.History) bool {
	if x == nil {
		return len(held) >= many && len(held) == cap(held)
	}
	return len(held)+x.stale >= cap(held)
}

// left is told that n admissions have gone and those behind them moved up. x may be nil.
func (x *index) left(n int) {
	if x != nil {
		x.stale += n
	}
}
