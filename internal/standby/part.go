package standby

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

// part is what is wrapped under one name. Limiters of one name share their records.
type part struct {
	*Standby
	name string
	// repeats reports whether a call that Redis may have carried out can be decided alone.
	repeats bool
	// mirrored reports whether the node's own records have what Redis decided, and so are
	// incomplete where something could not be mirrored.
	mirrored bool
	// tell tells Redis of some operations on a key, and forgets each when it knows. The key's
	// lock is held.
	tell func(ctx context.Context, key string, some []operation) error
}

var (
	// errNotAsked is the cause of an error of a call that Redis was not asked for.
	errNotAsked = errors.New("Redis has not been told yet what this node decided alone")
	errAlone    = errors.New("Redis is away, and a node alone cannot promise that")
	errAgain    = errors.New("the master has changed its state")
)

// patience is how long a call waits for the node's own disk.
const patience = time.Second

// decide has Redis decide about a key by together, or this node by alone while the master is
// away. Alone is called with the key's lock held.
func (p *part) decide(ctx context.Context, doing, key string, together func() error, alone func(ctx context.Context, m *master) error) error {
	if err := throttle.CheckKey(key); err != nil {
		return err
	}
	const tries = 4
	for range tries {
		if err := ctx.Err(); err != nil {
			return throttle.Unavailable(doing, err)
		}
		m := p.masterOf(key)
		var err error
		if p.look(m, true) == away {
			err = p.decideAlone(ctx, doing, m, key, alone)
		} else if err = p.decideTogether(ctx, m, key, together); errors.Is(err, throttle.ErrUnavailable) {
			if repeatable := p.repeats || undone(err); p.awaitAway(ctx, m, err) && repeatable {
				continue
			}
		}
		if err != errAgain {
			return err
		}
	}
	return throttle.Unavailable(doing, errNotAsked)
}

func (p *part) decideAlone(ctx context.Context, doing string, m *master, key string, alone func(context.Context, *master) error) error {
	lock := p.lock(p.holder(key))
	lock.Lock()
	defer lock.Unlock()
	if p.look(m, true) != away {
		return errAgain
	}
	if p.mirrored {
		if err := p.own.complete(); err != nil {
			return throttle.Unavailable(doing, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return alone(ctx, m)
}

func (p *part) decideTogether(ctx context.Context, m *master, key string, together func() error) error {
	holder := p.holder(key)
	if p.journal.has(holder) {
		if err := p.settle(ctx, m, key); err != nil {
			return err
		}
	}
	lock := p.lock(holder)
	lock.RLock()
	defer lock.RUnlock()
	if p.journal.has(holder) || p.look(m, true) == away {
		return errAgain
	}
	err := together()
	if err == nil {
		m.heard()
	}
	return err
}

// awaitAway has the master probed because a call has failed, and reports whether it is away. A
// call that only timed out does not wait for the probe.
func (s *Standby) awaitAway(ctx context.Context, m *master, err error) bool {
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, errAgain) {
		return false
	}
	m.failed(err)
	probed := s.suspect(m)
	if s.look(m, true) == away {
		return true
	}
	if timedOut(err) {
		return false
	}
	enough := time.NewTimer(s.o.Timeout)
	defer enough.Stop()
	select {
	case <-probed:
	case <-enough.C:
	case <-ctx.Done():
	}
	return s.look(m, true) == away
}

func (p *part) holder(key string) string { return p.name + "\x00" + key }

// atOnce is how many operations of a key Redis is told of with its lock held.
const atOnce = 128

// settle tells Redis what the journal has of a key, or of many operations the first.
func (p *part) settle(ctx context.Context, m *master, key string) error {
	lock := p.lock(p.holder(key))
	lock.Lock()
	defer lock.Unlock()
	if p.look(m, false) == away {
		return errAgain
	}
	some := p.journal.some(p.holder(key), atOnce)
	if len(some) == 0 {
		return nil
	}
	switch err := p.tell(ctx, key, some); {
	case errors.Is(err, throttle.ErrUnavailable):
		m.failed(err)
		p.suspect(m)
		return fmt.Errorf("%w: %w", errNotAsked, err)
	case err != nil: // Redis will never take it
		p.o.Log.Error("an operation of this node alone is dropped", "what", p.name, "cause", err)
		_ = p.journal.forget(ctx, p.holder(key), some...)
	}
	return nil
}
