package standby

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pause lies between two looks at the masters.
	pause = 250 * time.Millisecond
	// sweepEvery is how often expired operations are dropped, and the clock is saved.
	sweepEvery = 10 * time.Second
	// tellTimeout bounds how long one key is told.
	tellTimeout = 2 * time.Second
)

// run looks after the masters and the journal until the standby ends.
func (s *Standby) run() {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for s.work.Err() == nil {
		for _, m := range s.allMasters() {
			s.attend(m)
		}
		s.own.save(s.table)
		if time.Since(s.sweptAt) >= sweepEvery {
			s.sweep()
			s.save()
		}
		select {
		case <-ticker.C:
		case <-s.wake:
		case <-s.work.Done():
		}
	}
}

// attend tells a master what the journal has for it, unless it is away, and ends the outage. A
// master that has no keys any more is not probed for ever.
func (s *Standby) attend(m *master) {
	_, current := s.probeKey(m.address)
	if s.look(m, current) == away {
		return
	}
	if !s.tellAll(m) {
		return
	}
	if len(s.waiting(m)) == 0 {
		m.mu.Lock()
		s.apply(m, drained)
		m.mu.Unlock()
	}
}

// waiting returns the journal's entries for a master. Those of a name that is not wrapped any more
// wait until it is, or until they expire.
func (s *Standby) waiting(m *master) []*entry {
	return s.journal.all(func(e *entry) bool {
		_, known := s.parts.Load(e.part)
		return known && e.master == m
	})
}

// tellAll tells Redis of all entries for a master, several keys at a time, and reports whether it
// could. After some failures it leaves the rest for later.
func (s *Standby) tellAll(m *master) bool {
	const together, mostFailures = 8, 8
	var failures atomic.Int64
	var telling sync.WaitGroup
	free := make(chan struct{}, together)
	for _, e := range s.waiting(m) {
		free <- struct{}{}
		if failures.Load() >= mostFailures || s.work.Err() != nil {
			break
		}
		telling.Go(func() {
			if s.tellKey(m, e) != nil {
				failures.Add(1)
			}
			<-free
		})
	}
	telling.Wait()
	return failures.Load() == 0
}

func (s *Standby) tellKey(m *master, e *entry) error {
	found, _ := s.parts.Load(e.part)
	p := found.(*part)
	for s.journal.has(p.holder(e.key)) {
		ctx, cancel := context.WithTimeout(s.work, tellTimeout)
		err := p.settle(ctx, m, e.key)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep drops the operations that do not matter any more.
func (s *Standby) sweep() {
	s.sweptAt = time.Now()
	now := s.o.Clock.Now()
	for holder, old := range s.journal.expired(now) {
		lock := s.lock(holder)
		lock.Lock()
		old = slices.DeleteFunc(old, func(o operation) bool { newest, _ := s.journal.at(holder, o.a.ID); return newest.until != o.until })
		for some := range slices.Chunk(old, atOnce) {
			_ = s.journal.forget(s.work, holder, some...)
		}
		lock.Unlock()
	}
}

// save writes what the next process needs to know, as far as the disk takes it.
func (s *Standby) save() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.own.save(s.table)
	if err := s.o.Clock.save(ctx, s.table); err != nil {
		s.o.Log.Debug("the clock could not be saved", "cause", err)
	}
}
