package cache

import (
	"container/heap"
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
)

// memory keeps all records in maps, no more than most bytes of them. Each shard orders its
// records by expiry, and each write removes what has expired from its own shard and one
// other, so no goroutine is needed to keep expired records from piling up.
type memory struct {
	now    func() int64
	most   int64
	used   atomic.Int64
	closed atomic.Bool
	seed   maphash.Seed
	turn   atomic.Uint64 // which shard the next write sweeps
	shards [64]shard
}

type shard struct {
	sync.Mutex
	records map[string]*kept
	queue   expiryQueue
}

// kept is a record at a position of its shard's expiry queue.
type kept struct {
	key string
	record
	position int
}

// overhead is what a record takes besides the bytes of its key and value: its struct, a map
// slot, a queue slot, and rounding up by the allocator.
const overhead = 176

func cost(key string, value []byte) int64 { return int64(len(key)+len(value)) + overhead }

// sweepMost bounds how many expired records one write removes from a shard.
const sweepMost = 8

func newMemory(o Options) *memory {
	m := &memory{now: o.Now, most: o.Bytes, seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].records = map[string]*kept{}
	}
	return m
}

func (m *memory) shard(key string) *shard {
	return &m.shards[maphash.String(m.seed, key)%uint64(len(m.shards))]
}

func (m *memory) get(_ context.Context, key string) ([]byte, error) {
	if m.closed.Load() {
		return nil, ErrClosed
	}
	s := m.shard(key)
	s.Lock()
	defer s.Unlock()
	if k := s.records[key]; k != nil {
		return k.at(m.now()), nil
	}
	return nil, nil
}

func (m *memory) update(_ context.Context, key string, step Step) error {
	if m.closed.Load() {
		return ErrClosed
	}
	m.sweep(&m.shards[m.turn.Add(1)%uint64(len(m.shards))], sweepMost)
	err := m.try(key, step)
	if err == ErrFull && m.sweepAll() {
		err = m.try(key, step)
	}
	return err
}

// try takes the step, unless there is no room for what it returns.
func (m *memory) try(key string, step Step) error {
	s := m.shard(key)
	s.Lock()
	defer s.Unlock()
	now := m.now()
	m.expire(s, now, sweepMost)
	old := s.records[key]
	var was record
	var freed int64
	if old != nil {
		was, freed = old.record, cost(key, old.value)
	}
	next, changed := was.apply(now, step)
	switch {
	case !changed:
		return nil
	case next.value == nil:
		m.remove(s, old)
		return nil
	}
	grown := cost(key, next.value) - freed
	if used := m.used.Add(grown); used > m.most && grown > 0 {
		m.used.Add(-grown)
		return ErrFull
	}
	if old != nil {
		old.record = next
		heap.Fix(&s.queue, old.position)
		return nil
	}
	k := &kept{key: key, record: next}
	s.records[key] = k
	heap.Push(&s.queue, k)
	return nil
}

// expire removes up to most expired records of a locked shard.
func (m *memory) expire(s *shard, now int64, most int) (removed int) {
	for removed < most && len(s.queue) > 0 && now >= s.queue[0].expires {
		m.remove(s, s.queue[0])
		removed++
	}
	return removed
}

func (m *memory) remove(s *shard, k *kept) {
	delete(s.records, k.key)
	heap.Remove(&s.queue, k.position)
	m.used.Add(-cost(k.key, k.value))
}

func (m *memory) sweep(s *shard, most int) (removed int) {
	s.Lock()
	defer s.Unlock()
	return m.expire(s, m.now(), most)
}

// sweepAll makes room in all shards, and reports whether it did.
func (m *memory) sweepAll() bool {
	removed := 0
	for i := range m.shards {
		removed += m.sweep(&m.shards[i], 16*sweepMost)
	}
	return removed > 0
}

// each copies one shard at a time, so that visit runs without a lock.
func (m *memory) each(ctx context.Context, prefix string, visit func(string, []byte) bool) error {
	for i := range m.shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.closed.Load() {
			return ErrClosed
		}
		for _, k := range m.live(&m.shards[i], prefix) {
			if !visit(k.key, k.value) {
				return nil
			}
		}
	}
	return nil
}

func (m *memory) live(s *shard, prefix string) []kept {
	s.Lock()
	defer s.Unlock()
	now := m.now()
	var all []kept
	for key, k := range s.records {
		if strings.HasPrefix(key, prefix) && k.at(now) != nil {
			all = append(all, *k)
		}
	}
	return all
}

// ready returns ErrFull when there is no room for another small record.
func (m *memory) ready(context.Context) error {
	switch {
	case m.closed.Load():
		return ErrClosed
	case m.used.Load()+2*overhead > m.most && !m.sweepAll():
		return ErrFull
	}
	return nil
}

func (m *memory) close() error {
	m.closed.Store(true)
	return nil
}

// expiryQueue is a heap.Interface with the record that expires first at the top.
type expiryQueue []*kept

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].expires < q[j].expires }
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

func (q *expiryQueue) Push(x any) {
	k := x.(*kept)
	k.position = len(*q)
	*q = append(*q, k)
}

func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	k := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return k
}
