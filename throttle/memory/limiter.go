package memory

import (
	"context"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A Limiter admits sends by a meter. It implements throttle.Limiter. A Take, a Count
// or a Peek of a key on record waits as a rule only for calls about the same key, and one that is
// denied again not even for those. One that brings a new key waits for others in the same part of
// the table, as do Release and Reset, and each admission where meters of several limits count on
// the same states. Where all places are taken, those that bring a new key wait for each other
// while they look for an entry that has expired.
//
// A denial and a Peek take no memory. An admission takes some only while the key's state
// grows.
type Limiter struct {
	meter   meter.Meter
	quota   *throttle.Tier        // what its verdicts speak of
	view    view                  // stands for the meter
	slowest *largest[meter.Meter] // of all that count on these states
	states  *table[counted]
	none    *meter.State // what is known of a key without an entry
	o       Options
}

// counted is a state that has its first memory beside it, which is all that most keys need:
// so what is on record of them comes from one place.
type counted struct {
	meter.State
	parts [2]int64
	held  [1]throttle.Admission
}

// clear makes it the state of a key nothing is known of.
func (c *counted) clear() {
	*c = counted{}
	c.Parts, c.Held = c.parts[:0], c.held[:0]
}

// New returns a Limiter that nothing is on record of. It panics where there is no meter,
// or the zero value of one: those count nothing.
func New(m meter.Meter, o Options) *Limiter {
	if !meter.Usable(m) {
		panic("memory: a limiter needs a meter that one of package meter's New functions made")
	}
	o = o.orDefaults()
	slowest := newLargest(m, func(m meter.Meter) int64 { return -int64(m.Tier().Limit) })
	l := Limiter{slowest: slowest, none: new(meter.State), o: o}
	l.states = newTable(o, kind[counted]{
		until: func(c *counted) int64 { return slowest.get().Expires(&c.State) },
		clear: (*counted).clear,
	})
	return l.by(m)
}

// by is the limiter that counts by this meter.
func (l Limiter) by(m meter.Meter) *Limiter {
	quota := m.Quota()
	l.meter, l.quota, l.view = m, &quota, l.states.viewOf(m.String())
	return &l
}

// With returns a Limiter that counts by another meter, and what both admit counts for
// both: so a limit can be changed, or one caller be held to a lower one. A meter of
// another form, see [meter.Meter], cannot read what is on record, and begins with nothing. Like New it panics
// where there is no meter.
//
// A key stays on record until it says nothing to the slowest of all meters that were
// handed in here by then. Where buckets of several rates share it, each send that is admitted
// settles what has drained since the last, for all, by the rate of who admits it.
func (l *Limiter) With(m meter.Meter) *Limiter {
	if !meter.Usable(m) || m.Form() != l.meter.Form() {
		return New(m, l.o)
	}
	l.slowest.offer(m)
	return l.by(m)
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.WrongID("take")
	}
	if err := throttle.CheckCall(ctx, "take", key); err != nil {
		return v, err
	}
	k, now := l.states.fingerprint(key), l.states.now()
	likely, no, _ := l.states.refused(k, l.view)
	if no.Holds(id, now) {
		r := no.Reading(now)
		r.Spell(&v, l.quota, now)
		return v, nil
	}
	shard, e, now, err := l.states.lockOrAdd(k, likely, now)
	if err != nil {
		return v, throttle.Unchanged(throttle.Unavailable("take", err))
	}
	r, changed := l.meter.Take(&e.state.State, id, now)
	l.keepOrSay(shard, e, k, r, changed)
	r.Spell(&v, l.quota, now)
	return v, nil
}

// Count admits one send without an id, or says no: the send can neither be repeated nor given
// back. That takes less time than Take, and a key stays as small as with one send.
//
// A limiter can be used in both ways. But while a bucket of either kind remembers a send that
// Take has admitted, it remembers those that are counted after it, too, and they are among
// the meter.MaxHeld that it can: so what is only counted better has a limiter of its own.
//
// An error is as one of Take, and always an ErrUnchanged.
func (l *Limiter) Count(ctx context.Context, key string) (r throttle.Reading, err error) {
	if err := throttle.CheckCall(ctx, "count", key); err != nil {
		return r, err
	}
	k, now := l.states.fingerprint(key), l.states.now()
	likely, no, _ := l.states.refused(k, l.view)
	if no.Lasts(now) {
		return no.Reading(now), nil
	}
	shard, e, now, err := l.states.lockOrAdd(k, likely, now)
	if err != nil {
		return r, throttle.Unchanged(throttle.Unavailable("count", err))
	}
	r = l.meter.Count(&e.state.State, now)
	l.keepOrSay(shard, e, k, r, r.Allowed)
	return r, nil
}

// keepOrSay keeps a state that has changed, or remembers that this is a no, and unlocks.
func (l *Limiter) keepOrSay(s *shard[counted], e *entry[counted], k fingerprint, r throttle.Reading, changed bool) {
	switch {
	case changed:
		l.states.keep(s, e)
	case !r.Allowed:
		e.say(l.view.of(k), r.Refusal(e.state.IDs()))
	}
	unlock(s, e)
	if changed && l.slowest.amongOthers() {
		l.states.hastenKey(k) // what had drained was settled by the rate of this one
	}
}

// Peek answers what Take would, but for ErrFull: it needs no place, and says of a new key what
// Take would if there were one.
func (l *Limiter) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	if err := throttle.CheckCall(ctx, "peek", key); err != nil {
		return v, err
	}
	k, now := l.states.fingerprint(key), l.states.now()
	likely, no, _ := l.states.refused(k, l.view)
	if no.Lasts(now) {
		r := no.Reading(now)
		r.Spell(&v, l.quota, now)
		return v, nil
	}
	e, now := l.states.lock(k, likely, now)
	if e == nil {
		l.meter.Look(l.none, now).Spell(&v, l.quota, now)
		return v, nil
	}
	r := l.meter.Look(&e.state.State, now)
	if !r.Allowed {
		e.say(l.view.of(k), r.Refusal(e.state.IDs()))
	}
	e.Unlock()
	r.Spell(&v, l.quota, now)
	return v, nil
}

// Release gives one admission back, if the meter can.
func (l *Limiter) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	if err := throttle.CheckCall(ctx, "release", key); err != nil {
		return false, err
	}
	shard, e, now := l.states.lockNow(key)
	defer unlock(shard, e)
	if e == nil || !l.meter.Release(&e.state.State, id, now) {
		return false, nil
	}
	if e.state.Count == 0 {
		l.states.forget(shard, e)
		return true, nil
	}
	e.no.takeBack()
	l.states.hasten(shard, e)
	return true, nil
}

// Reset forgets the key.
func (l *Limiter) Reset(ctx context.Context, key string) (cleared int, err error) {
	if err := throttle.CheckCall(ctx, "reset", key); err != nil {
		return 0, err
	}
	shard, e, now := l.states.lockNow(key)
	defer unlock(shard, e)
	if e == nil {
		return 0, nil
	}
	cleared = l.meter.Used(&e.state.State, now)
	l.states.forget(shard, e)
	return cleared, nil
}
