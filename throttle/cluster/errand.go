package cluster

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
)

// An errand is one call of a limiter, and what for.
type errand struct {
	redisstore.Call
	doing string
}

// A place is where a limiter keeps what is on record.
type place struct {
	store  *redisstore.Store
	prefix string // of all its keys
}

// below is the place of another name on the same store.
func (p place) below(name string) place {
	return place{p.store, redisstore.Below(p.prefix, name)}
}

func (p place) begin(ctx context.Context, doing, key string) (errand, error) {
	if err := throttle.CheckKey(key); err != nil {
		return errand{}, fmt.Errorf("%s: %w", doing, err)
	}
	call, err := p.store.Begin(ctx, p.prefix+key)
	if err != nil {
		return errand{}, throttle.Unchanged(throttle.Unavailable(doing, err))
	}
	return errand{call, doing}, nil
}

// failed is the error of an errand that came to nothing.
func (e errand) failed(err error) error {
	failure := throttle.Unavailable(e.doing, err)
	if redisstore.Undone(err) {
		return throttle.Unchanged(failure)
	}
	return failure
}

// decide runs a script that is to do nothing for who has gone: that takes, or takes up what was
// admitted elsewhere, which may have been given back since.
func (e errand) decide(by script, words ...any) (saw seen, err error) {
	err = e.Decide(by.Script, by.into(&saw), words...)
	return e.result(saw, err)
}

// reset runs a script that forgets the key, once, and not for who has gone: what came
// since would be forgotten with it.
func (e errand) reset(by script) (saw seen, err error) {
	err = e.DecideOnce(by.Script, by.into(&saw))
	return e.result(saw, err)
}

// look runs a script that only reads.
func (e errand) look(by script) (saw seen, err error) {
	err = e.Hear(by.Script, func(reply string) (now int64, err error) {
		saw, err = by.read(reply)
		return saw.now, err
	})
	return e.result(saw, err)
}

func (e errand) result(saw seen, err error) (seen, error) {
	if err != nil {
		return seen{}, e.failed(err)
	}
	return saw, nil
}

// release runs a script that gives one admission back. One that was carried out unheard
// has nothing left to report.
func (e errand) release(by *redisstore.Script, words ...any) (bool, error) {
	reply, err := e.Ask(by, words...)
	if err != nil {
		return false, e.failed(err)
	}
	return reply == "1", nil
}
