package memory

import (
	"context"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A Limiter admits sends by a meter. It implements throttle.Limiter; no call waits for
// anything but another one about a key in the same part of the table.
//
// A denial and a Peek take no memory. An admission takes some only until the key's state
// has grown as large as the meter lets it.
type Limiter struct {
	meter  meter.Meter
	states *table[meter.State]
	none   *meter.State // what is known of a key without an entry
	o      Options
}

// New returns a Limiter that nothing is on record of.
func New(m meter.Meter, o Options) *Limiter {
	o = o.orDefaults()
	return &Limiter{meter: m, states: newTable[meter.State](o), none: new(meter.State), o: o}
}

// With returns a Limiter that counts by another meter, and what both admit counts for
// both: so a limit can be changed, or one caller be held to a lower one. A meter of
// another form cannot read what is on record, and begins with nothing.
func (l *Limiter) With(m meter.Meter) *Limiter {
	if m.Form() != l.meter.Form() {
		return New(m, l.o)
	}
	other := *l
	other.meter = m
	return &other
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.ErrID
	}
	if err := begin(ctx, "take", key); err != nil {
		return v, err
	}
	shard, e, now, err := l.states.lockOrAdd(key)
	if err != nil {
		return v, unavailable("take", err)
	}
	var changed bool
	v, changed = l.meter.Take(&e.state, id, now)
	switch {
	case changed:
		shard.keep(e, l.meter.Expires(&e.state))
	case e.place == added:
		l.states.forget(shard, e)
	}
	shard.Unlock()
	return v, nil
}

// Peek answers what Take would.
func (l *Limiter) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if err := begin(ctx, "peek", key); err != nil {
		return throttle.Verdict{}, err
	}
	shard, e, now := l.states.lock(key)
	defer shard.Unlock()
	if e == nil {
		return l.meter.Look(l.none, now), nil
	}
	return l.meter.Look(&e.state, now), nil
}

// Release gives one admission back, if the meter can.
func (l *Limiter) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	if err := begin(ctx, "release", key); err != nil {
		return false, err
	}
	shard, e, now := l.states.lock(key)
	defer shard.Unlock()
	if e == nil || !l.meter.Release(&e.state, id, now) {
		return false, nil
	}
	if e.state.Count == 0 {
		l.states.forget(shard, e)
		return true, nil
	}
	shard.keep(e, l.meter.Expires(&e.state))
	return true, nil
}

// Reset forgets the key.
func (l *Limiter) Reset(ctx context.Context, key string) (cleared int, err error) {
	if err := begin(ctx, "reset", key); err != nil {
		return 0, err
	}
	shard, e, now := l.states.lock(key)
	defer shard.Unlock()
	if e == nil {
		return 0, nil
	}
	cleared = l.meter.Used(&e.state, now)
	l.states.forget(shard, e)
	return cleared, nil
}
