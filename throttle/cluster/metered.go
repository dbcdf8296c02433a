package cluster

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// metered is a limiter that counts by a meter. A script decides, and the meter spells
// the verdict from what the script saw.
type metered struct {
	store  *store
	prefix string
	meter  meter.Meter
	layout layout
}

var errDisagree = errors.New("the script and the meter have come to different decisions")

// Take implements throttle.Limiter.
func (l *metered) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.ErrID
	}
	e, err := l.store.begin(ctx, "take", l.prefix, key)
	if err != nil {
		return throttle.Verdict{}, err
	}
	defer e.end()
	saw, err := l.store.take(e, l.layout.take, id, l.layout.numbers)
	if err != nil {
		return throttle.Verdict{}, err
	}
	state, err := l.layout.state(saw)
	if err != nil {
		return throttle.Verdict{}, unavailable(e.doing, err)
	}
	v, changed := l.meter.Take(&state, id, saw.now)
	if v.Allowed != (saw.answer != denied) || changed != (saw.answer == admitted) {
		return throttle.Verdict{}, unavailable(e.doing, errDisagree)
	}
	return v, nil
}

// Peek implements throttle.Limiter.
func (l *metered) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	e, err := l.store.begin(ctx, "peek", l.prefix, key)
	if err != nil {
		return throttle.Verdict{}, err
	}
	defer e.end()
	saw, err := l.store.look(e, meterLookScript)
	if err != nil {
		return throttle.Verdict{}, err
	}
	state, err := l.layout.state(saw)
	if err != nil {
		return throttle.Verdict{}, unavailable(e.doing, err)
	}
	return l.meter.Look(&state, saw.now), nil
}

// Release implements throttle.Limiter.
func (l *metered) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	e, err := l.store.begin(ctx, "release", l.prefix, key)
	if err != nil {
		return false, err
	}
	defer e.end()
	words := append([]any{id.String(), l.layout.numbers, ""}, l.store.clockWords()...)
	return l.store.release(e, l.layout.release, words...)
}

// Reset implements throttle.Limiter. Like that of a Limiter it is not repeated.
func (l *metered) Reset(ctx context.Context, key string) (int, error) {
	e, err := l.store.begin(ctx, "reset", l.prefix, key)
	if err != nil {
		return 0, err
	}
	defer e.end()
	saw, err := l.store.reset(e, meterResetScript)
	if err != nil {
		return 0, err
	}
	state, err := l.layout.state(saw)
	if err != nil {
		return 0, unavailable(e.doing, err)
	}
	return l.meter.Used(&state, saw.now), nil
}
