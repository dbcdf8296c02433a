package cluster

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
)

// Memory remembers for a second the states of keys that were refused, for any number of limiters.
//
// A step that its algorithm refuses on a remembered state is refused without asking; any other asks. So it
// admits nothing that the limiter's home would refuse. A release, a record or a reset through a limiter is
// in force there when it returns. What another process does is seen within the second.
type Memory struct {
	seed   maphash.Seed
	since  func() int64 // microseconds since began, which no clock setting changes
	most   int64        // bytes that a part keeps in a second
	parts  [64]part
	counts struct{ refusals, asked atomic.Uint64 }
}

// part is the memory of some of the keys. Those of the second before are in old.
type part struct {
	mu       sync.Mutex
	new, old map[place]*refused
	bytes    int64 // of new
	turned   int64 // when new began
	forgot   uint64
	asking   map[place]chan struct{} // closes when the home has answered
}

type place struct {
	home *remembering
	key  string
}

// refused is a state, and between which times it was read.
type refused struct {
	state           []byte
	now             int64 // by the home's clock
	asked, answered int64
}

const (
	maxAge   = int64(time.Second / time.Microsecond) // that a state is used for
	overhead = 256                                   // bytes of a remembered key besides itself and its state
)

// began is where this process counts time from, which no clock setting changes.
var began = time.Now()

func sinceBegan() int64 { return time.Since(began).Microseconds() }

// NewMemory returns a memory of so many bytes.
func NewMemory(bytes int64) *Memory {
	m := &Memory{seed: maphash.MakeSeed(), since: sinceBegan}
	m.most = bytes / int64(2*len(m.parts))
	return m
}

// Limiter returns a limiter whose refusals are remembered. It shares what it remembers with those by its With.
func (m *Memory) Limiter(l *throttle.Limiter) *throttle.Limiter {
	return throttle.New(l.Algorithm, &remembering{l.Home, m})
}

// Refusals returns how many decisions came from memory.
func (m *Memory) Refusals() uint64 { return m.counts.refusals.Load() }

// Asked returns how many decisions came from the homes.
func (m *Memory) Asked() uint64 { return m.counts.asked.Load() }

// remembering is a throttle.Home around another.
type remembering struct {
	throttle.Home
	*Memory
}

// Do implements throttle.Home.
func (h *remembering) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	at, p := place{h, key}, &h.parts[maphash.String(h.seed, key)%uint64(len(h.parts))]
	switch op.Step {
	case throttle.StepTake, throttle.StepPeek:
	case throttle.StepRecall:
		r, _, _ := h.refuse(p, at, op)
		return r, nil
	default:
		defer p.forget(at)
		return h.Home.Do(ctx, key, op)
	}
	r, known, forgot := h.refuse(p, at, op)
	if known && !r.Remembered {
		ctx = redisx.Call(ctx) // waiting is part of the call
		defer p.waitTurn(ctx, at)()
		r, known, forgot = h.refuse(p, at, op)
	}
	if r.Remembered {
		return r, nil
	}
	next := &refused{asked: h.since()}
	r, err := h.Home.Do(ctx, key, op)
	if err != nil || r.Degraded { // a node alone needs no memory
		return r, err
	}
	h.counts.asked.Add(1)
	next.state, next.now, next.answered = r.State, r.Now, h.since()
	if r.Done && !known {
		return r, nil // most keys are never refused
	}
	if r.Done { // the state that it left may refuse the next one
		next.state, _ = op.Take(r.State, r.Now)
	}
	// A state that admits, but was not changed, may be refused by another limit.
	if known && !r.Done || !op.By.Peek(next.state, r.Now).Allowed {
		p.remember(at, next, forgot, h.most)
	} else if known {
		p.forget(at)
	}
	return r, nil
}

// refuse answers a step if a remembered state refuses it. Known reports that there is a state, perhaps one that
// is too old or refuses no longer. Forgot tells later whether a key was forgotten meanwhile.
func (h *remembering) refuse(p *part, at place, op throttle.Op) (r throttle.Reply, known bool, forgot uint64) {
	since := h.since()
	kept, forgot := p.find(at, since)
	if kept == nil {
		return r, false, forgot
	}
	// The home's clock is between the two, and the step is refused at both.
	earliest, latest := kept.now+(since-kept.answered)/1000, kept.now+(since-kept.asked)/1000+1
	var v throttle.Verdict
	if op.Step == throttle.StepTake { // which is admitted under an id that is on record
		_, v = op.Take(kept.state, latest)
	} else {
		v = op.By.Peek(kept.state, latest)
	}
	if v.Allowed || since-kept.asked > maxAge {
		return r, true, forgot
	}
	h.counts.refusals.Add(1)
	return throttle.Reply{State: kept.state, Now: earliest, Remembered: true}, true, forgot
}

func (p *part) find(at place, since int64) (kept *refused, forgot uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := since - p.turned; age >= maxAge {
		p.old, p.new, p.bytes, p.turned = p.new, nil, 0, since
		if age >= 2*maxAge {
			p.old = nil
		}
	}
	return cmp.Or(p.new[at], p.old[at]), p.forgot
}

func (p *part) forget(at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.new, at)
	delete(p.old, at)
	p.forgot++
}

// remember keeps a state for a second. If this second's are too many, or a key was forgotten meanwhile, it keeps none:
// the state of before is older than this node's last step.
func (p *part) remember(at place, next *refused, forgot uint64, most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := int64(len(at.key)+len(next.state)) + overhead
	if p.forgot != forgot || p.bytes+size > most {
		delete(p.new, at)
		delete(p.old, at)
		return
	}
	if p.new == nil {
		p.new = map[place]*refused{}
	}
	if p.new[at] == nil {
		p.bytes += size
	}
	p.new[at] = next
}

// waitTurn has one caller of a key whose refusal has ended ask, and the others wait for it, or until ctx ends.
func (p *part) waitTurn(ctx context.Context, at place) (done func()) {
	p.mu.Lock()
	if p.asking == nil {
		p.asking = map[place]chan struct{}{}
	}
	first, turn := p.asking[at], make(chan struct{})
	if first == nil {
		p.asking[at] = turn
	}
	p.mu.Unlock()
	if first == nil {
		return func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.asking, at)
			close(turn)
		}
	}
	select {
	case <-first:
	case <-ctx.Done():
	}
	return func() {}
}
