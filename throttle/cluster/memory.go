package cluster

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// Memory remembers the states of keys that were refused, for the limiters of one client.
//
// While the only limit on a record refuses, no send is added to it, so the state stays right until
// the refusal ends, unless a send is released, recorded or reset. The script of such a step announces
// the key on a channel, and every node forgets it. So a refusal by a remembered state is what Redis
// would answer.
//
// A state is used for a second at most, which bounds what is not announced, such as a key deleted
// by hand; and only while heartbeats that this node sends itself come back by the same way.
type Memory struct {
	client  redis.UniversalClient
	channel string // of announcements
	beats   string // the channel of this node's heartbeats
	states  *cache.Recent[*remembered]

	seed        maphash.Seed
	epoch       atomic.Uint64 // counts up when all is forgotten
	generations [1 << 16]atomic.Uint64
	asking      sync.Map // a key to a channel that closes when Redis has answered
	heard       sync.Map // a master's address to when its last heartbeat that came back was sent

	refusals, asked atomic.Uint64

	calls      sync.RWMutex // read-locked by each step, locked for good by Close
	work       context.Context
	stop       context.CancelFunc
	background sync.WaitGroup
}

// remembered is a state that refuses.
type remembered struct {
	state []byte
	since int64 // when it was asked for
	mark
}

// mark is what changes when a key, or everything, is forgotten. Keys share generations by hash.
type mark struct{ epoch, generation uint64 }

const (
	maxAge   = time.Second // that a state is used for
	overhead = 256         // bytes of a remembered key besides itself and its state
)

// NewMemory returns a memory of so many bytes. Nodes with one prefix announce to each other; a
// Redis user needs the right to the channels that begin with it.
func NewMemory(client redis.UniversalClient, prefix string, size int64) (*Memory, error) {
	states, err := cache.NewRecent[*remembered](size)
	if err != nil {
		return nil, fmt.Errorf("a memory of refusals: %w", err)
	}
	m := &Memory{client: client, channel: prefix + ":changed", states: states, seed: maphash.MakeSeed()}
	m.beats = m.channel + ":" + throttle.NewID().String()
	m.work, m.stop = context.WithCancel(context.Background())
	m.background.Go(m.listen)
	m.background.Go(m.beat)
	return m, nil
}

// Close ends the memory, before its client is closed. Its limiters then ask Redis.
func (m *Memory) Close() {
	m.stop()
	m.background.Wait()
	m.calls.Lock() // never unlocked
	m.states.Close()
}

// Refusals returns how many decisions came from memory.
func (m *Memory) Refusals() uint64 { return m.refusals.Load() }

// Asked returns how many decisions came from Redis.
func (m *Memory) Asked() uint64 { return m.asked.Load() }

// Forget forgets everything, as after a change of the limits.
func (m *Memory) Forget() { m.epoch.Add(1) }

func (m *Memory) forget(key string) { m.generation(key).Add(1) }

func (m *Memory) generation(key string) *atomic.Uint64 {
	return &m.generations[maphash.String(m.seed, key)%uint64(len(m.generations))]
}

// markOf is noted before Redis is asked: what it answers is kept only if the mark is the same then.
func (m *Memory) markOf(key string) mark { return mark{m.epoch.Load(), m.generation(key).Load()} }

// do answers a step on a key of Redis from memory, or asks.
func (m *Memory) do(ctx context.Context, key string, op throttle.Op, c *clocks, ask func(context.Context) (throttle.Reply, error)) (throttle.Reply, error) {
	if !m.calls.TryRLock() {
		return ask(ctx)
	}
	defer m.calls.RUnlock()
	switch op.Step {
	case throttle.StepRecall:
		r, _ := m.refuse(key, op, c)
		return r, nil
	case throttle.StepTake, throttle.StepPeek:
	default:
		defer m.forget(key) // this node's callers see the step as soon as it is answered
		return ask(ctx)
	}
	r, known := m.refuse(key, op, c)
	if known && !r.Remembered {
		ctx = redisx.Call(ctx) // waiting is part of the call
		defer m.waitTurn(ctx, key)()
		r, known = m.refuse(key, op, c)
	}
	if r.Remembered {
		return r, nil
	}
	before, since := m.markOf(key), sinceBegan()
	r, err := ask(ctx)
	m.asked.Add(1)
	if err == nil {
		m.keep(key, op, r, known, &remembered{since: since, mark: before})
	}
	return r, err
}

// waitTurn has one caller of a key whose refusal has ended ask Redis, and the others wait for it, or
// until ctx ends.
func (m *Memory) waitTurn(ctx context.Context, key string) (done func()) {
	turn := make(chan struct{})
	first, taken := m.asking.LoadOrStore(key, turn)
	if !taken {
		return func() { m.asking.Delete(key); close(turn) }
	}
	select {
	case <-first.(chan struct{}):
	case <-ctx.Done():
	}
	return func() {}
}

// refuse answers a step if a remembered state refuses it. Known reports that there is a state, perhaps
// one that is too old or refuses no longer.
func (m *Memory) refuse(key string, op throttle.Op, c *clocks) (r throttle.Reply, known bool) {
	kept, found := m.states.Get(key)
	if !found || kept.mark != m.markOf(key) {
		return r, false
	}
	master := c.masterOf(key)
	// The server's clock is between the two, and the step is refused at both.
	earliest, latest, ok := c.of(master).between(c.since())
	if !ok || sinceBegan()-kept.since > maxAge.Microseconds() || !m.hears(master) || admits(op, kept.state, latest) {
		return r, true
	}
	m.refusals.Add(1)
	return throttle.Reply{State: kept.state, Now: earliest, Remembered: true}, true
}

// admits reports whether a state admits a step. A Take of an id that is on record is admitted.
func admits(op throttle.Op, state []byte, now int64) bool {
	if op.Step != throttle.StepTake {
		return op.By.Peek(state, now).Allowed
	}
	_, v := op.Take(state, now)
	return v.Allowed
}

// keep remembers the state that Redis answered with, if the next send of the key is refused by it. If
// not, one that was known is out of date.
func (m *Memory) keep(key string, op throttle.Op, r throttle.Reply, known bool, next *remembered) {
	if next.state = r.State; r.Done {
		if !known { // most keys are not asked for again at once
			m.forget(key) // a Set may be under way
			return
		}
		next.state, _ = op.Take(r.State, r.Now)
	}
	switch {
	case op.By.Peek(next.state, r.Now).Allowed:
		if known {
			m.forget(key)
		}
	case m.markOf(key) == next.mark:
		next.state = bytes.Clone(next.state)
		m.states.Set(key, next, int64(len(key)+len(next.state)+overhead))
	}
}
