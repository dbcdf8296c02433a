package cache

// An Entry is a value as it is remembered. Its value never changes.
type Entry[V any] struct {
	value   V
	expires int64
	print   print
}

// An EntryMaker is a Codec that makes the entries for its values, with [NewEntry].
type EntryMaker[V any] interface {
	NewEntry(value V) *Entry[V]
}

// NewEntry makes an entry in one piece with room for what its value points to, and lay
// puts the value there. Whoever finds the entry then does not have to wait for the memory
// a second time, which takes as long as the rest of a read.
func NewEntry[V, Room any](lay func(room *Room) V) *Entry[V] {
	e := new(struct {
		Entry[V]
		room Room
	})
	e.value = lay(&e.room)
	return &e.Entry
}

// newEntry makes one as the codec would have it.
func (m *Map[V]) newEntry(value V, expires int64) *Entry[V] {
	maker, ok := m.codec.(EntryMaker[V])
	if !ok {
		return &Entry[V]{value: value, expires: expires}
	}
	e := maker.NewEntry(value)
	e.expires = expires
	return e
}

// at is the entry's value as seen at now; without an entry there is none.
func (e *Entry[V]) at(now int64) (value V, found bool) {
	if e == nil || now >= e.expires {
		return value, false
	}
	return e.value, true
}
