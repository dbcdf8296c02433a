package local

import (
	"context"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A metered limiter admits by one meter, on the states whose keys begin with part.
type metered struct {
	meter  meter.Meter
	quota  throttle.Tier // its verdicts name
	part   string
	states *sharedMap[*meter.State]
	now    func() int64
}

// nothing is the state of a key that nothing is known of. Nobody changes it.
var nothing = new(meter.State)

// Take implements throttle.Limiter. As a rule a no is known from memory, without a lock.
func (l *metered) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.WrongID("take")
	}
	if err := throttle.CheckCall(ctx, "take", key); err != nil {
		return v, err
	}
	now := l.now()
	if state, found := l.states.recall(l.part, key, now); found {
		if r, denied := l.denies(state, id, now); denied {
			r.Spell(&v, &l.quota, now)
			return v, nil
		}
	}
	return l.admit(ctx, key, id)
}

// denies looks before it is known whether there will be anything to write.
func (l *metered) denies(s *meter.State, id throttle.ID, now int64) (meter.Reading, bool) {
	r := l.meter.Look(s, now)
	return r, !r.Allowed && s.Held.Find(id) < 0
}

// admit decides with the key's lock held, as of the moment it is, and records a yes.
func (l *metered) admit(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	var r meter.Reading
	var now int64
	err = l.edit(ctx, "take", key, func(old *meter.State, moment int64) cache.Edit[*meter.State] {
		now = moment
		var denied, changed bool
		if r, denied = l.denies(old, id, now); denied {
			return cache.Keep[*meter.State]()
		}
		next := old.Clone()
		if r, changed = l.meter.Take(&next, id, now); !changed {
			return cache.Keep[*meter.State]()
		}
		return l.put(&next)
	})
	if err != nil {
		return v, err
	}
	r.Spell(&v, &l.quota, now)
	return v, nil
}

// Peek implements throttle.Limiter.
func (l *metered) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	if err := throttle.CheckCall(ctx, "peek", key); err != nil {
		return v, err
	}
	state, found, now, err := l.states.get(ctx, l.part, key, l.now)
	if err != nil {
		return v, throttle.Unchanged(throttle.Unavailable("peek", err))
	}
	if !found {
		state = nothing
	}
	r := l.meter.Look(state, now)
	r.Spell(&v, &l.quota, now)
	return v, nil
}

// Record implements throttle.Recorder.
func (l *metered) Record(ctx context.Context, key string, a throttle.Admission) error {
	if err := throttle.CheckRecord(ctx, key, a); err != nil {
		return err
	}
	return l.edit(ctx, "record", key, func(old *meter.State, now int64) cache.Edit[*meter.State] {
		next := old.Clone()
		if !meter.Record(l.meter, &next, a, now) {
			return cache.Keep[*meter.State]()
		}
		return cache.Put(&next, max(l.meter.Expires(&next), now)+meter.RecordKept)
	})
}

// Release implements throttle.Limiter. A meter does not remember an unlimited number of
// admissions, and there are some that it cannot take back.
func (l *metered) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	err = l.edit(ctx, "release", key, func(old *meter.State, now int64) cache.Edit[*meter.State] {
		next := old.Clone()
		released = l.meter.Release(&next, id, now)
		switch {
		case !released:
			return cache.Keep[*meter.State]()
		case next.Count == 0:
			return cache.Remove[*meter.State]()
		}
		return l.put(&next)
	})
	return released && err == nil, err
}

// Reset implements throttle.Limiter. It forgets also what has expired by a clock that
// may yet step back.
func (l *metered) Reset(ctx context.Context, key string) (cleared int, err error) {
	err = l.edit(ctx, "reset", key, func(s *meter.State, now int64) cache.Edit[*meter.State] {
		cleared = l.meter.Used(s, now)
		return cache.Remove[*meter.State]()
	})
	if err != nil {
		return 0, err
	}
	return cleared, nil
}

// edit lets change replace the state. What it is shown is the zero state if there is
// none that counts, and must not be changed. The clock is read with the key's lock held.
func (l *metered) edit(ctx context.Context, doing, key string, change func(s *meter.State, now int64) cache.Edit[*meter.State]) error {
	if err := throttle.CheckCall(ctx, doing, key); err != nil {
		return err
	}
	err := l.states.update(ctx, l.part, key, l.now, func(s *meter.State, found bool, now int64) cache.Edit[*meter.State] {
		if !found {
			s = nothing
		}
		return change(s, now)
	})
	return unavailable(doing, err)
}

// put keeps a state for as long as it says anything.
func (l *metered) put(s *meter.State) cache.Edit[*meter.State] {
	return cache.Put(s, l.meter.Expires(s))
}
