package memory

// slots find the entries of a shard: in the slot that the first hash of its key says, or
// else in one of the next, and none between the two is free. There is a power of two of
// them. A slot has that hash beside it, so what is looked at is as a rule one slot and the
// entry itself.
type slots[S any] []slot[S]

type slot[S any] struct {
	hash  uint64
	entry *entry[S] // nil where it is free
}

// home is the slot where a key of this hash is looked for first. The last bits of the hash
// are the same in all of a shard.
func (s slots[S]) home(hash uint64) int { return int(hash/shards) & (len(s) - 1) }

// after is the next slot; the first comes after the last.
func (s slots[S]) after(i int) int { return (i + 1) & (len(s) - 1) }

func (s slots[S]) find(k fingerprint) *entry[S] {
	if len(s) == 0 {
		return nil
	}
	for i := s.home(k.first); s[i].entry != nil; i = s.after(i) {
		if s[i].hash == k.first && s[i].entry.second == k.second {
			return s[i].entry
		}
	}
	return nil
}

// with is the slots with one entry more than the n that are in them. At least a quarter
// stays free.
func (s slots[S]) with(e *entry[S], n int) slots[S] {
	if 4*(n+1) > 3*len(s) {
		s = s.grown()
	}
	s.put(slot[S]{e.first, e})
	return s
}

func (s slots[S]) grown() slots[S] {
	next := make(slots[S], max(8, 2*len(s)))
	for _, old := range s {
		if old.entry != nil {
			next.put(old)
		}
	}
	return next
}

func (s slots[S]) put(what slot[S]) {
	i := s.home(what.hash)
	for s[i].entry != nil {
		i = s.after(i)
	}
	s[i] = what
}

// remove frees the slot of an entry that is there. Those behind it move up, where they
// would not be found any more across the gap.
func (s slots[S]) remove(e *entry[S]) {
	gap := s.home(e.first)
	for s[gap].entry != e {
		gap = s.after(gap)
	}
	last := len(s) - 1
	for i := s.after(gap); s[i].entry != nil; i = s.after(i) {
		if (i-s.home(s[i].hash))&last >= (i-gap)&last {
			s[gap], gap = s[i], i
		}
	}
	s[gap] = slot[S]{}
}
