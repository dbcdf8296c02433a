package standby

import (
	"bytes"
	"context"
	"errors"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/throttle"
)

// Merge returns one value for two of one key, the shared one and one that a node has
// made alone. Merging the same value again changes nothing.
type Merge = func(shared, own []byte, now int64) (next []byte, expires int64)

// store decides by Redis, and by the node's own records while Redis is away.
type store struct {
	*part
	shared, own keyed.Store
	merge       Merge
}

// Store wraps a pair of stores, one on Redis and one on this node's disk. With mirror, what Redis
// decides is also written to the own store. Without, the own store holds only what this node decided
// alone and has not synced.
func (s *Standby) Store(name string, shared, own keyed.Store, merge Merge, mirror bool) keyed.Store {
	st := &store{shared: shared, own: own, merge: merge}
	st.part = &part{Standby: s, name: name, mirrored: mirror, apply: st.apply}
	s.parts.Store(name, st.part)
	return st
}

// Update implements keyed.Store. After an error Redis may have taken the step, so the call does not
// take it alone as well.
func (st *store) Update(ctx context.Context, key string, step keyed.Step) (alone bool, err error) {
	err = st.decide(ctx, key, false, func() error {
		var next []byte
		var expires int64
		_, err := st.shared.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
			next, expires = step(old, now)
			return next, expires
		})
		if err != nil {
			return err
		}
		if st.mirrored && next != nil {
			st.mirror.write(st.keyOf(key), expires, func(ctx context.Context) error { return st.mirrorValue(ctx, key, next) })
		}
		return nil
	}, func(ctx context.Context) error {
		alone = true
		return st.updateAlone(ctx, key, step)
	})
	if err != nil {
		return false, throttle.Unavailable("changing a record", err)
	}
	return alone, nil
}

// mirrorValue writes a value of Redis to the own store.
func (st *store) mirrorValue(ctx context.Context, key string, value []byte) error {
	_, err := st.own.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) { return st.merge(value, old, now) })
	return err
}

// updateAlone takes the step on the own value, and notes it in the journal.
func (st *store) updateAlone(ctx context.Context, key string, step keyed.Step) error {
	changed, until := false, int64(0)
	_, err := st.own.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		next, expires := step(old, now)
		changed, until = !bytes.Equal(next, old), max(expires, now)
		return next, expires
	})
	if err != nil || !changed {
		return err
	}
	o := operation{kind: value}
	if before := st.journal.some(st.keyOf(key), 1, forever); len(before) > 0 {
		o = before[0]
	}
	o.until = max(o.until, until)
	if err := st.journal.put(ctx, st.keyOf(key), o); err != nil {
		return throttle.Unavailable("changing a record", err)
	}
	return nil
}

// apply merges the own value into that of Redis. A mirror keeps the merged value. Without one, the own value is first
// moved into the journal, so that the node no longer decides about it. Otherwise a code that Redis has, unconfirmed,
// could be right twice, there and here.
func (st *store) apply(ctx context.Context, key string, some []operation) error {
	var change []byte
	_, err := st.own.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		change = bytes.Clone(old)
		return st.merge(nil, old, now)
	})
	if err != nil {
		return err
	}
	if !st.mirrored {
		if change, err = st.moveToJournal(ctx, key, some[0], change); err != nil {
			return err
		}
	}
	var merged []byte
	_, err = st.shared.Update(ctx, key, func(old []byte, now int64) (next []byte, expires int64) {
		next, expires = st.merge(old, change, now)
		merged = bytes.Clone(next)
		return next, expires
	})
	if err == nil && st.mirrored {
		err = st.mirrorValue(ctx, key, merged)
	}
	if err == nil {
		later, _ := cache.Batch(ctx)
		_ = st.journal.forget(later, st.keyOf(key), some...)
	}
	return err
}

// moveToJournal merges the own value into that of the operation, and removes it.
func (st *store) moveToJournal(ctx context.Context, key string, o operation, own []byte) ([]byte, error) {
	if own == nil {
		return o.value, nil
	}
	var expires int64
	o.value, expires = st.merge(o.value, own, st.o.Clock.Now())
	o.until = max(o.until, expires)
	ctx, durable := cache.Batch(ctx)
	err := st.journal.put(ctx, st.keyOf(key), o)
	if err == nil {
		_, err = st.own.Update(ctx, key, func([]byte, int64) ([]byte, int64) { return nil, 0 })
	}
	if err = errors.Join(err, durable(ctx)); err != nil {
		return nil, throttle.Unavailable("changing a record", err)
	}
	return o.value, nil
}
