package cache

import (
	"context"
	"fmt"
	"runtime"
	"strings"
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

	hot     *ristretto.Cache[string, *Entry[V]]
	front   *front[V]
	open    atomic.Pointer[opening[V]] // nil once closed
	reached *Entry[V]                  // the Set that Ristretto worked on last
	stripes [1024]stripe[V]
	release func() // gives the name back
	closing sync.Once
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
	list(prefix, from []byte, most int, read func(key, value []byte) error) (next []byte, err error)
	Ready(ctx context.Context) error
}

// A stripe keeps the writers of its keys apart: it is one caller's at a time. It remembers
// the last Set that Ristretto has only queued, until it is done with it.
type stripe[V any] struct {
	turn
	queued atomic.Pointer[Entry[V]]
}

// NewMap opens the part of the disk that has this name. One Map at a time can have it:
// two would each remember what the other has changed.
func NewMap[V any](disk *Disk, name string, codec Codec[V], size Size) (*Map[V], error) {
	if disk == nil {
		return nil, fmt.Errorf("opening the part %q of a data directory: there is no disk", name)
	}
	if !disk.claim(name) {
		return nil, fmt.Errorf("opening the part %q of the data directory: it is open already", name)
	}
	m, err := newMap(disk, name, codec, size)
	if err != nil {
		disk.giveBack(name)
		return nil, err
	}
	m.release = func() { disk.giveBack(name) }
	return m, nil
}

func newMap[V any](disk store, name string, codec Codec[V], size Size) (*Map[V], error) {
	if err := size.check(); err != nil {
		return nil, err
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%q does not do as the name of a map: it is empty or has a NUL in it", name)
	}
	m := &Map[V]{release: func() {}, disk: disk, codec: codec, name: name, size: size, front: newFront[V](size.most())}
	hot, err := ristretto.NewCache(&ristretto.Config[string, *Entry[V]]{
		NumCounters:        size.most() * 4,
		MaxCost:            size.Bytes,
		BufferItems:        512,
		IgnoreInternalCost: true,
		Cost:               m.cost,
		KeyToHash: func(key string) (uint64, uint64) {
			p := m.front.print(key)
			return p.first, p.second
		},
		OnExit: m.front.drop,
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache of %d entries: %w", size.Entries, err)
	}
	m.hot = hot
	for i := range m.stripes {
		m.stripes[i].turn = newTurn()
	}
	m.open.Store(&opening[V]{hot: hot})
	return m, nil
}

// Get returns the value of the key if it has one that has not expired, and the moment that
// was so. The clock is read when the value has been, and nobody waits for writers longer than
// ctx lasts.
func (m *Map[V]) Get(ctx context.Context, key string, clock func() int64) (value V, found bool, now int64, err error) {
	e := m.remembered(key)
	if e == nil {
		if e, err = m.read(ctx, key); err != nil {
			return value, false, 0, err
		}
	}
	now = clock()
	value, found = e.at(now)
	return value, found, now, nil
}

// read is what the key has when its writers have gone.
func (m *Map[V]) read(ctx context.Context, key string) (*Entry[V], error) {
	s, err := m.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer s.Unlock()
	return m.current(s, key)
}

// Recall returns the value of the key at now if it is in memory. It never waits, for
// a disk or for a writer; not found means that Get has to be asked, or Update.
func (m *Map[V]) Recall(key string, now int64) (value V, found bool) {
	return m.remembered(key).at(now)
}

// Glance is Recall for whoever can do with a value in brief. Where it returns one that is all,
// and whether it has expired is the caller's to see. One that could be put in brief can still
// come back as the value itself, as Recall would return it.
func (m *Map[V]) Glance(key string, now int64) (brief Brief, value V, found bool) {
	open := m.open.Load()
	if open == nil {
		return brief, value, false
	}
	p := m.front.print(key)
	brief, e := m.front.glance(p)
	if brief == (Brief{}) {
		value, found = m.held(open, key, p, e).at(now)
	} else if sometimes() {
		open.get(key)
	}
	return brief, value, found
}

// Update lets edit replace the value of a key. No other Update of the key runs
// meanwhile, and edit must not use the Map. The value that edit is shown must not be
// changed, and neither may the one it returns afterwards.
//
// The clock is read when the caller's turn has come, however long that took, and is shown to
// edit. Nobody waits for others longer than ctx lasts, and once it has ended nothing is
// decided. What has begun to be read or written is waited for until the disk has answered.
func (m *Map[V]) Update(ctx context.Context, key string, clock func() int64, edit func(value V, found bool, now int64) Edit[V]) error {
	s, err := m.lock(ctx, key)
	if err != nil {
		return unchanged{err}
	}
	defer s.Unlock()
	old, err := m.current(s, key)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return unchanged{err}
	}
	now := clock()
	value, found := old.at(now)
	switch edit := edit(value, found, now); edit.kind {
	case put:
		return m.put(s, key, now, m.newEntry(edit.value, edit.expires))
	case remove:
		m.forget(s, key)
		return m.disk.delete(m.diskKey(key))
	}
	return nil
}

// put writes to disk first. When that fails nobody knows what the disk holds, so
// memory forgets the key and the next read asks the disk.
func (m *Map[V]) put(s *stripe[V], key string, now int64, e *Entry[V]) error {
	bytes := m.codec.Append(appendExpiry(make([]byte, 0, 192), e.expires), e.value)
	if err := m.disk.put(m.diskKey(key), bytes, lifetime(now, e.expires)); err != nil {
		m.forget(s, key)
		return err
	}
	m.remember(s, key, e)
	return nil
}

// current is what the key has, from memory or else from disk, and then remembered. It is
// nil if there is nothing. The key's stripe is held, so that an older value can never
// overtake a newer one.
func (m *Map[V]) current(s *stripe[V], key string) (e *Entry[V], err error) {
	if m.open.Load() == nil {
		return nil, ErrClosed
	}
	if e, ok := m.hot.Get(key); ok {
		return e, nil
	}
	found, err := m.disk.get(m.diskKey(key), func(bytes []byte) (err error) {
		e, err = m.parse(bytes)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	m.remember(s, key, e)
	return e, nil
}

func (m *Map[V]) parse(bytes []byte) (*Entry[V], error) {
	expires, bytes, err := cutExpiry(bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	value, err := m.codec.Parse(bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return m.newEntry(value, expires), nil
}

// lock waits for the key's stripe as long as ctx lasts.
func (m *Map[V]) lock(ctx context.Context, key string) (*stripe[V], error) {
	s := m.stripe(m.front.print(key))
	return s, s.lock(ctx)
}

func (m *Map[V]) stripe(p print) *stripe[V] { return &m.stripes[p.second%uint64(len(m.stripes))] }

func (m *Map[V]) diskKey(key string) []byte {
	return append(append(append(make([]byte, 0, len(m.name)+1+len(key)), m.name...), 0), key...)
}

// Close waits for writers; what is called later gets ErrClosed. The memory is given back
// and Ristretto's goroutines end when the last reader has left, which the garbage collector
// finds out: to count readers would cost each of them. So a test that looks for goroutines
// left behind runs it first. The disk stays open.
func (m *Map[V]) Close() { m.closing.Do(m.close) }

func (m *Map[V]) close() {
	open := m.open.Swap(nil)
	for i := range m.stripes {
		m.stripes[i].Lock() // whoever is inside may still Set
		m.stripes[i].Unlock()
	}
	runtime.AddCleanup(open, (*ristretto.Cache[string, *Entry[V]]).Close, m.hot)
	m.release()
}
