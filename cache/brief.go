package cache

// A Brief is a value and when it expires, in two words that only its codec can read. The zero
// Brief is none.
type Brief [2]uint64

// A Briefer is a Codec that can put some of its values in brief. Who glances at such a value
// does not have to wait for it to come from memory, which takes as long as all the rest.
type Briefer[V any] interface {
	// Brief is the value and when it expires. It is the zero Brief, which no value may be put
	// as, where they do not fit.
	Brief(value V, expires int64) Brief
}

// brief is the entry as the codec puts it.
func (m *Map[V]) brief(e *Entry[V]) (b Brief) {
	if briefer, ok := m.codec.(Briefer[V]); ok {
		b = briefer.Brief(e.value, e.expires)
	}
	return b
}
