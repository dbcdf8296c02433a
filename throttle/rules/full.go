package rules

import (
	"hash/maphash"
	"sync/atomic"
)

// full remembers which keys had no send left when they were last charged. It is a hint: a key that it has forgotten
// costs a charge and its refund.
type full struct {
	seed  maphash.Seed
	slots []atomic.Uint32 // of the keys that have one slot the last is remembered
}

func newFull() full { return full{maphash.MakeSeed(), make([]atomic.Uint32, 1<<16)} }

func (f *full) slot(q *question) (slot *atomic.Uint32, sum uint32) {
	h := maphash.Comparable(f.seed, struct{ rule, key string }{q.rule.Name, q.key})
	return &f.slots[h>>48], uint32(h)
}

// has reports whether the next send of a key may be refused.
func (f *full) has(q *question) bool {
	slot, sum := f.slot(q)
	return slot.Load() == sum
}

// note remembers what a round was answered.
func (f *full) note(round []question) {
	for i := range round {
		q := &round[i]
		if q.verdict.Tiers == nil {
			continue
		}
		if slot, sum := f.slot(q); q.verdict.Remaining() == 0 {
			slot.Store(sum)
		} else {
			slot.CompareAndSwap(sum, 0)
		}
	}
}
