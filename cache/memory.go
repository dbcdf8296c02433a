package cache

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// memory keeps all records in maps, no more than most bytes of them. Each write checks a few records of its shard and
// removes the expired ones. A write that finds no room checks all records.
type memory struct {
	now    func() int64
	most   int64
	used   atomic.Int64
	closed atomic.Bool
	seed   maphash.Seed
	swept  atomic.Int64 // when all records were checked
	shards [64]memoryShard
}

type memoryShard struct {
	sync.Mutex
	records map[string]record
}

// overhead is what a record takes besides the bytes of its key and value: a slot of a map that
// is not full, and rounding up by the allocator.
const overhead = 144

func cost(key string, value []byte) int64 { return int64(len(key)+len(value)) + overhead }

func newMemory(o Options) *memory {
	m := &memory{now: o.Now, most: o.Bytes, seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].records = map[string]record{}
	}
	return m
}

func (m *memory) shard(key string) *memoryShard {
	return &m.shards[maphash.String(m.seed, key)%uint64(len(m.shards))]
}

func (m *memory) get(_ context.Context, key string) ([]byte, error) {
	if m.closed.Load() {
		return nil, ErrClosed
	}
	s := m.shard(key)
	s.Lock()
	defer s.Unlock()
	return s.records[key].at(m.now()), nil
}

func (m *memory) update(_ context.Context, key string, step Step) error {
	if m.closed.Load() {
		return ErrClosed
	}
	err := m.try(key, step)
	if err == ErrFull {
		m.sweepAll()
		err = m.try(key, step)
	}
	return err
}

// try takes the step, and returns ErrFull if there is no room for what it changes.
func (m *memory) try(key string, step Step) error {
	const few = 8
	s := m.shard(key)
	s.Lock()
	defer s.Unlock()
	old, found := s.records[key]
	next, changed := old.apply(m.now(), step)
	if !changed {
		return nil
	}
	defer m.sweep(s, few)
	grown := int64(0)
	if found {
		grown -= cost(key, old.value)
	}
	if next.value != nil {
		grown += cost(key, next.value)
	}
	if used := m.used.Add(grown); used > m.most && grown > 0 {
		m.used.Add(-grown)
		return ErrFull
	}
	if next.value == nil {
		delete(s.records, key)
	} else {
		s.records[key] = next
	}
	return nil
}

// sweep checks up to count records of a shard that is locked. A map gives them in random order.
func (m *memory) sweep(s *memoryShard, count int) {
	now := m.now()
	for key, r := range s.records {
		if count--; count < 0 {
			return
		}
		if now >= r.expires {
			delete(s.records, key)
			m.used.Add(-cost(key, r.value))
		}
	}
}

// sweepAll checks all records, at most once a second.
func (m *memory) sweepAll() {
	const second = 1000
	now, swept := m.now(), m.swept.Load()
	if swept != 0 && now >= swept && now < swept+second || !m.swept.CompareAndSwap(swept, max(now, 1)) {
		return
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.Lock()
		m.sweep(s, len(s.records))
		s.Unlock()
	}
}

// each copies one shard at a time, so that visit runs without a lock.
func (m *memory) each(ctx context.Context, prefix, from string, visit func(string, []byte) bool) error {
	var all []row
	for i := range m.shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.closed.Load() {
			return ErrClosed
		}
		all = append(all, m.live(&m.shards[i], prefix, from)...)
	}
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.key, b.key) })
	for _, r := range all {
		if err := ctx.Err(); err != nil || !visit(r.key, r.value) {
			return err
		}
	}
	return nil
}

func (m *memory) live(s *memoryShard, prefix, from string) (all []row) {
	s.Lock()
	defer s.Unlock()
	now := m.now()
	for key, r := range s.records {
		if key >= from && strings.HasPrefix(key, prefix) && r.at(now) != nil {
			all = append(all, row{key, r})
		}
	}
	return all
}

// ready returns ErrFull when there is no room for another small record.
func (m *memory) ready(context.Context) error {
	const small = 2 * overhead
	if m.closed.Load() {
		return ErrClosed
	}
	if m.used.Load()+small > m.most {
		m.sweepAll()
	}
	if m.used.Load()+small > m.most {
		return ErrFull
	}
	return nil
}

func (m *memory) close() error {
	m.closed.Store(true)
	return nil
}
