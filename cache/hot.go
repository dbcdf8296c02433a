package cache

import (
	"runtime"

	"github.com/dgraph-io/ristretto/v2"
)

// An opening is what readers hold on to while they read, so that the collector knows
// when the last of them has left: Ristretto must not be closed under a Get, and a count
// of readers would cost each of them a good part of its way.
type opening[V any] struct {
	hot *ristretto.Cache[string, *Entry[V]]
}

func (o *opening[V]) get(key string) *Entry[V] {
	e, _ := o.hot.Get(key)
	runtime.KeepAlive(o)
	return e
}

// remembered is what the key has in memory.
func (m *Map[V]) remembered(key string) *Entry[V] {
	open := m.open.Load()
	if open == nil {
		return nil
	}
	p := m.front.print(key)
	return m.held(open, key, p, m.front.find(p))
}

// held is what Ristretto has of a key that was looked for in front. It is told sometimes of
// those that were found there, or it would think that nobody asks for them.
func (m *Map[V]) held(open *opening[V], key string, p print, found *Entry[V]) *Entry[V] {
	if found != nil {
		if sometimes() {
			open.get(key)
		}
		return found
	}
	e := open.get(key)
	if e != nil && m.front.wants(p) {
		m.bringForward(key, p)
	}
	return e
}

// bringForward has the front answer for a key that Ristretto holds, unless somebody writes it.
func (m *Map[V]) bringForward(key string, p print) {
	s := m.stripe(p)
	if !s.TryLock() {
		return
	}
	defer s.Unlock()
	if m.open.Load() == nil {
		return
	}
	if e, ok := m.hot.Get(key); ok {
		m.show(key, e)
	}
}

// show has the front answer with an entry for as long as Ristretto holds it, and reports
// whether it does now. The key's stripe is held.
func (m *Map[V]) show(key string, e *Entry[V]) (held bool) {
	m.front.put(e, m.brief(e))
	if seen, _ := m.hot.Get(key); seen != e {
		m.front.drop(e)
		return false
	}
	return true
}

// remember makes Ristretto answer with the entry, or not at all. The key's stripe is
// held.
//
// Ristretto makes room only for keys that it does not hold. Values that have grown in place
// can leave it over its size, so until it is within it again each key is one of those.
func (m *Map[V]) remember(s *stripe[V], key string, e *Entry[V]) {
	m.settle(s)
	e.print = m.front.print(key)
	m.front.forget(e.print)
	if m.hot.RemainingCost() < 0 {
		m.hot.Del(key)
	}
	s.queued.Store(e)
	// Ristretto asks for the cost later. What has no place in its queue it drops.
	if !m.hot.Set(key, e, 0) || m.show(key, e) {
		s.queued.Store(nil)
	}
}

// forget makes nobody in memory answer for the key.
func (m *Map[V]) forget(s *stripe[V], key string) {
	m.settle(s)
	m.front.forget(m.front.print(key))
	m.hot.Del(key)
}

// settle returns when Ristretto is done with the last Set of the stripe. A Set of a
// key that it does not hold is only queued, and until it is worked on a second Set of
// the key would lose to it and a Del would come too early.
func (m *Map[V]) settle(s *stripe[V]) {
	if s.queued.Load() != nil {
		m.hot.Wait()
		s.queued.Store(nil)
	}
}

// cost is called by Ristretto's one worker for each Set in its queue, in their order,
// before it works on it. So it is done with the one before.
func (m *Map[V]) cost(e *Entry[V]) int64 {
	if done := m.reached; done != nil {
		m.stripe(done.print).queued.CompareAndSwap(done, nil)
	}
	m.reached = e
	return m.size.cost(m.codec.Weigh(e.value))
}
