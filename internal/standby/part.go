package standby

import (
	"context"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
)

// part is the records under one name. Limiters of one name share their records.
type part struct {
	*Standby
	name string
	// mirrored reports whether the node's own records have what Redis decided, and so may be
	// incomplete.
	mirrored bool
	// apply applies operations on a key to Redis, and forgets each that Redis confirmed. The
	// record's lock is held.
	apply func(ctx context.Context, key string, some []operation) error
}

var (
	errNotSynced = errors.New("the journal of this record is not synced to Redis yet")
	errAlone     = errors.New("Redis is away, and a node cannot do this alone")
	errUnheard   = errors.New("Redis may have charged it, and did not say so")
	errAgain     = errors.New("the master has changed its state")
)

func (p *part) keyOf(key string) recordKey { return recordKey{p.name, key} }

// decide calls together, in which Redis decides about a key, or alone while the master is away. It calls
// alone with the record's lock held. Where Redis may have carried out the call, it is decided alone only
// if it is repeatable.
func (p *part) decide(ctx context.Context, key string, repeatable bool, together func() error, alone func(ctx context.Context) error) error {
	err := errAgain
	for tries := 4; err == errAgain && tries > 0; tries-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := p.o.Prober.MasterOf(key)
		if m.State() != prober.Away {
			err = p.decideTogether(ctx, m, key, together)
			again := repeatable || redisx.Undone(err) || errors.Is(err, errNotSynced)
			if err != nil && err != errAgain && m.Failed(ctx, err) && again {
				err = errAgain
			}
			continue
		}
		err = p.locked(ctx, key, func(ctx context.Context) error {
			if m.State() != prober.Away {
				return errAgain
			}
			if p.outage.Load() == nil {
				p.noteOutage()
			}
			if err := p.mirror.complete(); p.mirrored && err != nil {
				return err
			}
			return alone(ctx)
		})
	}
	if err == errAgain {
		err = fmt.Errorf("%w: %w", throttle.ErrUnchanged, errNotSynced)
	}
	return err
}

// locked calls do with the record's lock held, and patience for the node's own disk, which is waited for once.
func (p *part) locked(ctx context.Context, key string, do func(context.Context) error) error {
	unlock, err := p.locks.lock(ctx, p.keyOf(key), exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, durable := cache.Batch(ctx)
	err = do(ctx)
	if lost := durable(ctx); err == nil {
		err = lost
	}
	return err
}

func (p *part) decideTogether(ctx context.Context, m *prober.Master, key string, together func() error) error {
	k := p.keyOf(key)
	for p.journal.has(k) {
		if err := p.settle(ctx, m, key); err == errAgain {
			return err
		} else if err != nil {
			return fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
		}
	}
	unlock, err := p.locks.lock(ctx, k, sharing)
	if err != nil {
		return err
	}
	defer unlock()
	if p.journal.has(k) || m.State() == prober.Away {
		return errAgain
	}
	return together()
}

// atOnce is how many operations of a record are synced with its lock held.
const atOnce = 128

// settle syncs the operations of a key, or the first atOnce of them. Those that Redis can never
// apply are dropped, or they would keep the node degraded.
func (p *part) settle(ctx context.Context, m *prober.Master, key string) error {
	k := p.keyOf(key)
	unlock, err := p.locks.lock(ctx, k, exclusive)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSynced, err)
	}
	defer unlock()
	if m.State() == prober.Away {
		return errAgain
	}
	some := p.journal.some(k, atOnce, forever)
	if len(some) == 0 {
		return nil
	}
	err = p.apply(ctx, key, some)
	if errors.Is(err, redisx.ErrType) {
		p.o.Log.Error("journal operations dropped: Redis cannot apply them", "records", p.name, "operations", len(some), "cause", err)
		_ = p.journal.forget(ctx, k, some...)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSynced, err)
	}
	return nil
}
