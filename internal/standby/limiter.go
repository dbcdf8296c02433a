package standby

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/throttle"
)

// Limiter decides by Redis, and by the node's own records while Redis is away. It implements
// throttle.Historian.
type Limiter struct {
	*part
	window      int64 // the longest
	shared, own throttle.Historian
}

// Limiter wraps a pair of limiters that count by the algorithm, one on Redis and one on this node's
// disk. Limiters of one name have the same shared and own records.
func (s *Standby) Limiter(name string, a throttle.Algorithm, shared, own throttle.Historian) *Limiter {
	_, exact := a.(throttle.Policy)
	l := &Limiter{shared: shared, own: own}
	for _, t := range a.Peek(nil, s.o.Clock.Now()).Tiers {
		l.window = max(l.window, t.Window.Milliseconds())
	}
	l.part = &part{Standby: s, name: name, exact: exact, mirrored: true, apply: l.apply}
	s.parts.Store(name, l.part)
	return l
}

// Take implements throttle.Limiter. A refusal says that nothing is charged, so it is an error where
// Redis may have charged the id before the node refused it alone.
func (l *Limiter) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	unheard := false // Redis may have charged it
	err = l.decide(ctx, "take", key, func() (err error) {
		v, err = l.shared.Take(ctx, key, id)
		if err != nil {
			unheard = unheard || !errors.Is(err, throttle.ErrUnchanged)
			return err
		}
		unheard = false
		l.o.Clock.heard(v.Now)
		if v.Allowed {
			l.mirrorAll(key, throttle.Admission{ID: id, At: v.At})
		}
		return nil
	}, func(ctx context.Context) error {
		v, err = l.takeAlone(ctx, key, id)
		return err
	})
	if err == nil && unheard && !v.Allowed {
		err = throttle.Unavailable("take", errUnheard)
	}
	if err != nil {
		return throttle.Verdict{}, err
	}
	return v, nil
}

// takeAlone admits a send if the node's own records do and the journal takes it. If only the journal
// does not, the node is too strict.
func (l *Limiter) takeAlone(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	v, err := l.own.Take(ctx, key, id)
	v.Degraded = true
	if err != nil || !v.Allowed {
		return v, err
	}
	a := throttle.Admission{ID: id, At: v.At}
	if err := l.journal.put(ctx, l.keyOf(key), operation{kind: record, a: a, until: a.At + l.window}); err != nil {
		return v, throttle.Unavailable("take", err)
	}
	l.admitted.Add(1)
	return v, nil
}

// mirrorAll records on the node what Redis has admitted.
func (l *Limiter) mirrorAll(key string, all ...throttle.Admission) {
	l.mirror.write(l.o.Clock.Now()+l.window, func(ctx context.Context) error { return l.own.Record(ctx, key, all...) })
}

// Peek implements throttle.Limiter.
func (l *Limiter) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	err = l.decide(ctx, "peek", key, func() (err error) {
		if v, err = l.shared.Peek(ctx, key); err == nil {
			l.o.Clock.heard(v.Now)
		}
		return err
	}, func(ctx context.Context) (err error) {
		v, err = l.own.Peek(ctx, key)
		v.Degraded = true
		return err
	})
	if err != nil {
		return throttle.Verdict{}, err
	}
	return v, nil
}

// Release implements throttle.Limiter. A release that Redis does not answer is synced later, but a
// counter's only if Redis certainly was not asked. The result is then that of this node's own
// records.
func (l *Limiter) Release(ctx context.Context, key string, a throttle.Admission) (released bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, throttle.Unavailable("release", err)
	}
	err = l.decide(ctx, "release", key, func() (err error) {
		if released, err = l.shared.Release(ctx, key, a); err == nil {
			l.mirror.write(0, func(ctx context.Context) error { _, err := l.own.Release(ctx, key, a); return err })
		}
		return err
	}, func(ctx context.Context) error {
		released, err = l.releaseAlone(ctx, key, a)
		return err
	})
	if errors.Is(err, throttle.ErrUnavailable) && (l.exact || errors.Is(err, throttle.ErrUnchanged)) {
		released, err = l.releaseLater(ctx, key, a)
		released = released || l.exact && err == nil // perhaps by another node
	}
	return released, err
}

// releaseLater journals a release although the master is not away.
func (l *Limiter) releaseLater(ctx context.Context, key string, a throttle.Admission) (released bool, err error) {
	err = l.locked(context.WithoutCancel(ctx), key, func(ctx context.Context) error {
		released, err = l.releaseAlone(ctx, key, a)
		return err
	})
	return released, err
}

// releaseAlone removes an admission from the own records, and notes that in the journal. Redis may
// have an admission of the journal already: an exact one becomes a release, one
// of a counter is dropped.
func (l *Limiter) releaseAlone(ctx context.Context, key string, a throttle.Admission) (bool, error) {
	had, err := l.own.Release(ctx, key, a)
	if err != nil {
		return false, err
	}
	if !l.exact {
		if o, found := l.journal.at(l.keyOf(key), a.ID); found {
			return had, l.journal.forget(ctx, l.keyOf(key), o)
		}
		if !had {
			return false, nil
		}
	}
	if err := l.journal.put(ctx, l.keyOf(key), operation{kind: release, a: a, until: l.o.Clock.Now() + l.window}); err != nil {
		return false, throttle.Unavailable("release", err)
	}
	return had, nil
}

// Reset implements throttle.Limiter. It cannot be promised without Redis, so it is
// throttle.ErrUnavailable while that is away.
func (l *Limiter) Reset(ctx context.Context, key string) (cleared int, err error) {
	err = l.decide(ctx, "reset", key, func() (err error) {
		if cleared, err = l.shared.Reset(ctx, key); err == nil {
			l.mirror.write(0, func(ctx context.Context) error { _, err := l.own.Reset(ctx, key); return err })
		}
		return err
	}, func(context.Context) error { return throttle.Unavailable("reset", errAlone) })
	return cleared, err
}

// Record implements throttle.Limiter. As Reset, it needs Redis.
func (l *Limiter) Record(ctx context.Context, key string, all ...throttle.Admission) error {
	return l.decide(ctx, "record", key, func() error {
		err := l.shared.Record(ctx, key, all...)
		if err == nil {
			l.mirrorAll(key, all...)
		}
		return err
	}, func(context.Context) error { return throttle.Unavailable("record", errAlone) })
}

// History implements throttle.Historian.
func (l *Limiter) History(ctx context.Context, key string) (h throttle.History, err error) {
	err = l.decide(ctx, "history", key,
		func() (err error) { h, err = l.shared.History(ctx, key); return err },
		func(ctx context.Context) (err error) { h, err = l.own.History(ctx, key); return err })
	return h, err
}

// Each implements throttle.Historian. It visits the records of Redis only, as this node has only a
// part of them.
func (l *Limiter) Each(ctx context.Context, visit func(throttle.History) bool) error {
	return l.shared.Each(ctx, visit)
}

// apply sends admissions to Redis, and then releases. A counter's release is forgotten before it
// is sent, as it must not be sent twice.
func (l *Limiter) apply(ctx context.Context, key string, some []operation) error {
	var records, releases []operation
	var all []throttle.Admission
	for _, o := range some {
		if o.kind == release {
			releases = append(releases, o)
			continue
		}
		records, all = append(records, o), append(all, o.a)
	}
	if len(all) > 0 {
		if err := l.shared.Record(ctx, key, all...); err != nil {
			return err
		}
		_ = l.journal.forget(ctx, l.keyOf(key), records...)
	}
	for _, o := range releases {
		if !l.exact && l.journal.forget(ctx, l.keyOf(key), o) != nil {
			continue // the next start sends it
		}
		if _, err := l.shared.Release(ctx, key, o.a); err != nil {
			return err
		}
		_ = l.journal.forget(ctx, l.keyOf(key), o)
	}
	return nil
}
