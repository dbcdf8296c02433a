package cache

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

// A Map is the values of one type on a Disk, by key.
type Map[V any] struct {
	disk  store
	codec Codec[V]
	name  string
	size  Size

	hot      *ristretto.Cache[string, entry[V]]
	serials  atomic.Uint64
	seed     maphash.Seed
	locks    [1024]sync.Mutex
	visitors visitors
}

// A Codec writes values to disk and reads them back.
type Codec[V any] interface {
	// Append adds the value's bytes to b.
	Append(b []byte, value V) []byte
	// Parse reads what Append wrote and keeps nothing of b. Anything else is an error.
	Parse(b []byte) (V, error)
	// Weigh is roughly how many bytes of memory the value takes.
	Weigh(value V) int
}

// store is the part of a Disk that a Map needs.
type store interface {
	get(key []byte, read func(value []byte) error) (found bool, err error)
	put(key, value []byte, ttl int64) error
	delete(key []byte) error
}

// An entry is a value as it is remembered. Entries and their values never change.
type entry[V any] struct {
	value   V
	expires int64
	serial  uint64 // tells this entry from the one it replaced
}

// NewMap opens the part of the disk that has this name. One Map at a time has it.
func NewMap[V any](disk *Disk, name string, codec Codec[V], size Size) (*Map[V], error) {
	return newMap(disk, name, codec, size)
}

func newMap[V any](disk store, name string, codec Codec[V], size Size) (*Map[V], error) {
	if err := size.check(); err != nil {
		return nil, err
	}
	// Two seeded hashes stand for a key inside Ristretto, which keeps no keys. Nobody
	// outside this process can look for two keys that share 128 secret bits.
	first, second := maphash.MakeSeed(), maphash.MakeSeed()
	hot, err := ristretto.NewCache(&ristretto.Config[string, entry[V]]{
		NumCounters:        size.Entries * 4,
		MaxCost:            size.Bytes,
		BufferItems:        512,
		IgnoreInternalCost: true,
		KeyToHash: func(key string) (uint64, uint64) {
			return maphash.String(first, key), maphash.String(second, key)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache of %d entries: %w", size.Entries, err)
	}
	return &Map[V]{disk: disk, codec: codec, name: name, size: size, hot: hot, seed: maphash.MakeSeed()}, nil
}

// Get returns the value of the key if it has one that has not expired at now.
func (m *Map[V]) Get(key string, now int64) (value V, found bool, err error) {
	hash := maphash.String(m.seed, key)
	if !m.visitors.enter(hash) {
		return value, false, ErrClosed
	}
	defer m.visitors.leave(hash)
	if e, ok := m.hot.Get(key); ok {
		return e.at(now)
	}
	lock := m.lock(hash)
	defer lock.Unlock()
	e, err := m.load(key)
	if err != nil {
		return value, false, err
	}
	return e.at(now)
}

// at is the entry's value as seen at now.
func (e entry[V]) at(now int64) (value V, found bool, err error) {
	if now >= e.expires {
		return value, false, nil
	}
	return e.value, true, nil
}

// Update lets edit replace the value of a key. No other Update of the key runs
// meanwhile, and edit must not use the Map. The value that edit is shown must not be
// changed, and neither may the one it returns afterwards.
func (m *Map[V]) Update(key string, now int64, edit func(value V, found bool) Edit[V]) error {
	hash := maphash.String(m.seed, key)
	if !m.visitors.enter(hash) {
		return ErrClosed
	}
	defer m.visitors.leave(hash)
	lock := m.lock(hash)
	defer lock.Unlock()

	old, ok := m.hot.Get(key)
	if !ok {
		var err error
		if old, err = m.load(key); err != nil {
			return err
		}
	}
	value, found, _ := old.at(now)
	return m.apply(key, now, edit(value, found))
}

func (m *Map[V]) apply(key string, now int64, edit Edit[V]) error {
	switch edit.kind {
	case put:
		return m.put(key, now, entry[V]{value: edit.value, expires: edit.expires})
	case remove:
		m.hot.Del(key)
		return m.disk.delete(m.diskKey(key))
	}
	return nil
}

// put writes to disk first. When that fails nobody knows what the disk holds, so
// memory forgets the key and the next read asks the disk.
func (m *Map[V]) put(key string, now int64, e entry[V]) error {
	bytes := m.codec.Append(appendExpiry(make([]byte, 0, 192), e.expires), e.value)
	if err := m.disk.put(m.diskKey(key), bytes, e.expires-now); err != nil {
		m.hot.Del(key)
		return err
	}
	m.remember(key, e)
	return nil
}

// load reads the key from disk and remembers it. An expiry of 0 means it is not there.
// It is called with the key's lock held, so that an older value can never overtake a
// newer one.
func (m *Map[V]) load(key string) (entry[V], error) {
	var e entry[V]
	found, err := m.disk.get(m.diskKey(key), func(bytes []byte) (err error) {
		e, err = m.parse(bytes)
		return err
	})
	if err != nil || !found {
		return entry[V]{}, err
	}
	m.remember(key, e)
	return e, nil
}

func (m *Map[V]) parse(bytes []byte) (e entry[V], err error) {
	e.expires, bytes, err = cutExpiry(bytes)
	if err == nil {
		e.value, err = m.codec.Parse(bytes)
	}
	if err != nil {
		return entry[V]{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return e, nil
}

// remember makes Ristretto answer with the entry, or not at all. A Set of a key it
// does not hold yet is only queued, and a second Set of the key would lose to it: so
// unless the entry can be seen at once, wait until the queue is done.
func (m *Map[V]) remember(key string, e entry[V]) {
	e.serial = m.serials.Add(1)
	m.hot.Set(key, e, m.size.cost(len(key)+m.codec.Weigh(e.value)))
	if seen, ok := m.hot.Get(key); !ok || seen.serial != e.serial {
		m.hot.Wait()
	}
}

func (m *Map[V]) lock(hash uint64) *sync.Mutex {
	lock := &m.locks[hash%uint64(len(m.locks))]
	lock.Lock()
	return lock
}

func (m *Map[V]) diskKey(key string) []byte {
	return append(append(append(make([]byte, 0, len(m.name)+1+len(key)), m.name...), 0), key...)
}

// Close waits for calls that are under way; later ones get ErrClosed. It leaves the
// disk open.
func (m *Map[V]) Close() {
	if m.visitors.close() {
		m.hot.Close()
	}
}
