package keyed

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed change.lua
	source string

	readScript = redisx.NewScript(source, nil)
	swapScript = redisx.NewScript(source, redisx.Did("1"))
)

var errContention = errors.New("other processes keep changing it")

// maxTries is how often an Update takes its step: once by a guess, and again whenever another process changed the value
// between its read and its write. One of those that collide always succeeds.
const maxTries = 15

type shared struct {
	records *redisx.Records
	prefix  string
}

// Redis returns the Store of all processes that use this prefix. Update reads the value and the server's clock, runs the
// step here, and writes the result by a script if the value has not changed. So an Update that changes something takes two
// round trips, any other one. Most values are new: what the step makes of none is written at once, by what is known of the
// clock, and if there was a value, that is the read. No write is sent twice: if its reply is lost, Update returns
// throttle.ErrUnavailable.
func Redis(client redis.UniversalClient, prefix string) Store {
	return &shared{redisx.NewRecords(client), prefix}
}

func (s *shared) Update(ctx context.Context, key string, step Step) (degraded bool, err error) {
	key = s.prefix + ":{" + key + "}" // in a Cluster, all that is kept of one key is in one slot
	ctx = redisx.Call(ctx)
	began, old, guessed := time.Now(), redisx.Answer{Now: s.records.Now(key)}, true
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return false, throttle.Unavailable(doing, err)
		}
		if old.Now == 0 { // it has to be read
			if old, err = s.records.Run(ctx, readScript, key); err != nil {
				return false, throttle.Unavailable(doing, fmt.Errorf("%w: %w", throttle.ErrUnchanged, err))
			}
			guessed = false
		}
		next, expires := step(old.Before, old.Now)
		if expires <= old.Now {
			next = nil
		}
		switch same := bytes.Equal(next, old.Before); {
		case same && guessed:
			old.Now = 0
			continue
		case same:
			if err := s.records.Confirm(ctx, key); err != nil {
				return false, throttle.Unavailable(doing, err)
			}
			return false, nil
		}
		answer, err := s.records.Run(ctx, swapScript, key, old.Before, next, expires, old.Now, s.records.End(ctx, key))
		if err != nil {
			if redisx.Undone(err) {
				err = fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
			}
			return false, throttle.Unavailable(doing, err)
		}
		if answer.Did == '1' {
			return false, nil
		}
		if !guessed {
			pause(ctx, time.Since(began))
			answer.Now = 0
		}
		old, guessed = answer, false
	}
	return false, throttle.Unavailable(doing, errContention)
}

// pause waits a random part of the time that the tries before took. So pauses grow with each try and with Redis's
// latency, and callers that collided come apart.
func pause(ctx context.Context, took time.Duration) {
	timer := time.NewTimer(rand.N(took))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
