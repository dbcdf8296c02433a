package throttle

import (
	"encoding/binary"
	"math/bits"
)

// IDs are some reservations, of which it is known who is not among them. They are a Bloom
// filter in one word, in which an id is two bits. The zero IDs are none.
type IDs uint64

// AnyID is IDs that may hold any.
const AnyID = ^IDs(0)

// fewIDs is up to how many one word tells most ids that are not among them.
const fewIDs = 16

// IDsOf are those of a short history, or else AnyID.
func IDsOf(h History) (ids IDs) {
	if len(h) > fewIDs {
		return AnyID
	}
	for i := range h {
		ids.Add(h[i].ID)
	}
	return ids
}

// MayHave says no only of an id that was not added.
func (s IDs) MayHave(id ID) bool { return s&bitsOf(id) == bitsOf(id) }

// Add adds an id.
func (s *IDs) Add(id ID) { *s |= bitsOf(id) }

func bitsOf(id ID) IDs {
	h := id.Hash()
	return 1<<(h>>58) | 1<<(h>>52&63)
}

// ManyIDs are IDs in several words, each id in one of them, for more than one word can tell.
// NewManyIDs makes them.
type ManyIDs []IDs

// NewManyIDs has a power of two of words, so many at least. With one for four ids it tells all
// but two of a hundred that were not added.
func NewManyIDs(words int) ManyIDs { return make(ManyIDs, 1<<bits.Len(uint(words-1))) }

// MayHave says no only of an id that was not added.
func (m ManyIDs) MayHave(id ID) bool { return m.word(id).MayHave(id) }

// Add adds an id.
func (m ManyIDs) Add(id ID) { m.word(id).Add(id) }

// word is the one of the id. Which bits it is in there, other bits of its hash say.
func (m ManyIDs) word(id ID) *IDs { return &m[int(id.Hash()>>12)&(len(m)-1)] }

// Hash is a number of which two ids seldom share the upper half. It is the same in all
// processes.
func (id ID) Hash() uint64 {
	const golden = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio
	h := binary.LittleEndian.Uint64(id[:]) * golden
	h ^= h >> 32
	return h * golden
}
