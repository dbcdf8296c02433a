package suppression

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
)

// index is the list as look-ups need it: the end of each entry, under a hash of its subject. Two of a
// million entries share a hash with a probability of one in 40 million, and other ones in each process.
type index struct {
	seed maphash.Seed

	mu       sync.RWMutex
	ends     [len(Reasons)]map[uint64]int64
	position int64             // up to which it has all changes of Redis
	later    map[changed]int64 // the newest change of those entries of which it has one after that
	newest   int64             // change in it
}

// changed names an entry by the place of its reason and the hash of its subject.
type changed struct {
	reason int
	hash   uint64
}

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed(), later: map[changed]int64{}}
	for i := range x.ends {
		x.ends[i] = map[uint64]int64{}
	}
	return x
}

// end returns when the entry of a subject for the reason at i ends, 0 for none.
func (x *index) end(subject string, i int) int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.ends[i]) == 0 {
		return 0
	}
	return x.ends[i][maphash.String(x.seed, subject)]
}

// has reports whether an entry is in it.
func (x *index) has(e Entry) bool {
	i := slices.Index(Reasons[:], e.Reason)
	return i >= 0 && x.end(e.Address, i) == e.end()
}

// apply sets an entry to its state at a position of the shared list, unless a newer state is known. On one machine
// the position is 0.
func (x *index) apply(e Entry, now, position int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := changed{slices.Index(Reasons[:], e.Reason), maphash.String(x.seed, e.Address)}
	if position < max(x.position, x.later[at]) {
		return
	}
	if position > x.position {
		x.later[at] = position
	}
	x.newest = max(x.newest, position)
	ends := x.ends[at.reason]
	if ends[at.hash] = e.end(); ends[at.hash] <= now {
		delete(ends, at.hash)
	}
}

// state returns the position and the newest change.
func (x *index) state() (position, newest int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.position, x.newest
}

// moveTo notes that all changes up to a position are in it.
func (x *index) moveTo(position int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.position = position
	maps.DeleteFunc(x.later, func(_ changed, at int64) bool { return at <= position })
}

// sweep forgets the entries that have ended.
func (x *index) sweep(now int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, ends := range x.ends {
		maps.DeleteFunc(ends, func(_ uint64, end int64) bool { return end <= now })
	}
}

// counts returns how many entries there are for each reason. Some may have ended within the last hour.
func (x *index) counts() map[Reason]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := map[Reason]int{}
	for i, r := range Reasons {
		all[r] = len(x.ends[i])
	}
	return all
}
