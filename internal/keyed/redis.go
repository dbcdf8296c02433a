package keyed

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed change.lua
	source string

	readScript = redisx.NewScript(source, nil)
	swapScript = redisx.NewScript(source, func(reply any) bool {
		text, _ := reply.(string)
		return strings.HasPrefix(text, "1")
	})
)

var (
	errContention = errors.New("other processes keep changing it")
	errReply      = errors.New("Redis sent a reply of an unknown form")
)

// maxTries is how often an Update takes its step: once by a guess, and again whenever another process changed the value
// between its read and its write. One of those that collide always succeeds.
const maxTries = 15

type shared struct {
	client redis.UniversalClient
	prefix string
	clocks *redisx.Clocks
}

// Redis returns the Store of all processes that use this prefix. Update reads the value and the server's clock, runs the
// step here, and writes the result by a script if the value has not changed. So an Update that changes something takes two
// round trips, any other one. Most values are new: what the step makes of none is written at once, by what is known of the
// clock, and if there was a value, that is the read. No write is sent twice: if its reply is lost, Update returns
// throttle.ErrUnavailable.
func Redis(client redis.UniversalClient, prefix string) Store {
	return &shared{client, prefix, redisx.NewClocks(client)}
}

// found is a value, nil for none, and the server's clock; or a guess at both.
type found struct {
	value   []byte
	now     int64 // 0: they have to be read
	guessed bool
}

func (s *shared) Update(ctx context.Context, key string, step Step) (degraded bool, err error) {
	key = s.prefix + ":{" + key + "}" // in a Cluster, all that is kept of one key is in one slot
	ctx = redisx.Call(ctx)
	began, old := time.Now(), found{now: s.clocks.Now(key), guessed: true}
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return false, throttle.Unavailable(doing, err)
		}
		if old.now == 0 {
			if _, old, err = s.run(ctx, readScript, key); err != nil {
				return false, throttle.Unavailable(doing, fmt.Errorf("%w: %w", throttle.ErrUnchanged, err))
			}
		}
		next, expires := step(old.value, old.now)
		if expires <= old.now {
			next = nil
		}
		switch same := bytes.Equal(next, old.value); {
		case same && old.guessed:
			old = found{}
			continue
		case same:
			return false, nil
		}
		swapped, instead, err := s.run(ctx, swapScript, key, old.value, next, expires, old.now, s.clocks.NotAfter(ctx, key))
		if err != nil {
			if redisx.Undone(err) {
				err = fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
			}
			return false, throttle.Unavailable(doing, err)
		}
		if swapped {
			return false, nil
		}
		if !old.guessed {
			pause(ctx, time.Since(began))
			instead = found{}
		}
		old = instead
	}
	return false, throttle.Unavailable(doing, errContention)
}

// run runs the script. It returns whether it replaced the value, the value before, and the server's clock.
func (s *shared) run(ctx context.Context, script *redisx.Script, key string, args ...any) (replaced bool, before found, err error) {
	sent := time.Now()
	answer, err := script.Run(ctx, s.client, key, args...)
	if err != nil {
		return false, before, err
	}
	text, _ := answer.(string)
	if len(text) < 7 {
		return false, before, errReply
	}
	var now [8]byte
	copy(now[2:], text[1:7])
	before.now = int64(binary.BigEndian.Uint64(now[:]))
	if len(text) > 7 {
		before.value = []byte(text[7:])
	}
	s.clocks.Heard(key, before.now, sent)
	return text[0] == '1', before, nil
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
