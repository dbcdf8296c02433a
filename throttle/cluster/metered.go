package cluster

import (
	"context"
	"errors"
	"strings"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// metered is a limiter that counts by a meter. A script decides, and the meter spells
// the verdict from what the script saw.
type metered struct {
	place
	meter  meter.Meter
	quota  throttle.Tier // its verdicts name
	layout layout
}

var errDisagree = errors.New("the script and the meter have come to different decisions")

// Take implements throttle.Limiter.
func (l *metered) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.WrongID("take")
	}
	e, err := l.begin(ctx, "take", key)
	if err != nil {
		return v, err
	}
	defer e.End()
	saw, err := e.decide(l.layout.take, id.String(), l.layout.numbers)
	if err != nil {
		return v, err
	}
	state, err := l.layout.state(saw)
	if err != nil {
		return v, throttle.Unavailable(e.doing, err)
	}
	r, changed := l.meter.Take(&state, id, saw.now)
	if r.Allowed != (saw.answer != denied) || changed != (saw.answer == admitted) {
		return v, throttle.Unavailable(e.doing, errDisagree)
	}
	r.Spell(&v, &l.quota, saw.now)
	return v, nil
}

// Peek implements throttle.Limiter.
func (l *metered) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	e, err := l.begin(ctx, "peek", key)
	if err != nil {
		return v, err
	}
	defer e.End()
	saw, err := e.look(meterLookScript)
	if err != nil {
		return v, err
	}
	state, err := l.layout.state(saw)
	if err != nil {
		return v, throttle.Unavailable(e.doing, err)
	}
	r := l.meter.Look(&state, saw.now)
	r.Spell(&v, &l.quota, saw.now)
	return v, nil
}

// Record implements throttle.Recorder. The key is kept an hour longer than its state says
// something, as meter.RecordKept says.
func (l *metered) Record(ctx context.Context, key string, a throttle.Admission) error {
	if err := throttle.CheckRecord(ctx, key, a); err != nil || a.At < 0 {
		return err
	}
	e, err := l.begin(ctx, "record", key)
	if err != nil {
		return err
	}
	defer e.End()
	_, err = e.decide(l.layout.record, elsewhere(a), l.layout.numbers)
	return err
}

// RecordAll is Record for many, in one step and as if for one after the other.
// Those of an error may be on record or not, and are safe to repeat.
func (l *metered) RecordAll(ctx context.Context, key string, all []throttle.Admission) error {
	var sends strings.Builder
	for _, a := range all {
		if err := throttle.CheckRecord(ctx, key, a); err != nil {
			return err
		}
		if a.At >= 0 {
			sends.WriteString(elsewhere(a))
		}
	}
	if sends.Len() == 0 {
		return nil
	}
	e, err := l.begin(ctx, "record", key)
	if err != nil {
		return err
	}
	defer e.End()
	_, err = e.decide(l.layout.record, sends.String(), l.layout.numbers)
	return err
}

// elsewhere is a send that was admitted elsewhere, as the scripts read it.
func elsewhere(a throttle.Admission) string {
	const latest = 1<<(8*sendTimeBytes) - 1 // which is ahead of every clock
	return a.ID.String() + pack(number{min(a.At, latest), sendTimeBytes})
}

// Release implements throttle.Limiter.
func (l *metered) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	e, err := l.begin(ctx, "release", key)
	if err != nil {
		return false, err
	}
	defer e.End()
	return e.release(l.layout.release, id.String(), l.layout.numbers, "")
}

// Reset implements throttle.Limiter. Like that of a Limiter it is not repeated.
func (l *metered) Reset(ctx context.Context, key string) (int, error) {
	e, err := l.begin(ctx, "reset", key)
	if err != nil {
		return 0, err
	}
	defer e.End()
	saw, err := e.reset(meterResetScript)
	if err != nil {
		return 0, err
	}
	state, err := l.layout.state(saw)
	if err != nil {
		return 0, throttle.Unavailable(e.doing, err)
	}
	return l.meter.Used(&state, saw.now), nil
}
