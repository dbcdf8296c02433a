package keyed

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed read.lua
	readSource string
	//go:embed swap.lua
	swapSource string

	readScript = redisx.NewScript(readSource, nil)
	swapScript = redisx.NewScript(swapSource, func(reply any) bool { return reply == int64(1) })
)

var (
	errContention = errors.New("other processes keep changing it")
	errReply      = errors.New("Redis sent a reply of an unknown form")
)

// maxTries is how often an Update starts again because another process changed the value
// between its read and its write. One of those that collide always succeeds.
const maxTries = 14

type shared struct {
	client redis.UniversalClient
	prefix string
}

// Redis returns the Store of all processes that use this prefix. Update reads the value and the server's clock, runs the
// step here, and writes the result by a script if the value has not changed. So an Update that changes something takes two
// round trips, any other one. The script is never sent twice: if its reply is lost, Update returns throttle.ErrUnavailable.
func Redis(client redis.UniversalClient, prefix string) Store { return &shared{client, prefix} }

func (s *shared) Update(ctx context.Context, key string, step Step) (degraded bool, err error) {
	key = s.prefix + ":{" + key + "}" // in a Cluster, all that is kept of one key is in one slot
	ctx = redisx.Call(ctx)
	began := time.Now()
	for try := range maxTries {
		if try > 0 {
			pause(ctx, time.Since(began))
		}
		if err := ctx.Err(); err != nil {
			return false, throttle.Unavailable(doing, err)
		}
		old, now, err := s.read(ctx, key)
		if err != nil {
			return false, throttle.Unavailable(doing, fmt.Errorf("%w: %w", throttle.ErrUnchanged, err))
		}
		next, expires := step(old, now)
		if expires <= now {
			next = nil
		}
		if bytes.Equal(next, old) {
			return false, nil
		}
		swapped, err := s.swap(ctx, key, old, next, expires)
		if err != nil {
			if redisx.Undone(err) {
				err = fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
			}
			return false, throttle.Unavailable(doing, err)
		}
		if swapped {
			return false, nil
		}
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

// read returns the value of the key, nil if there is none, and the server's clock.
func (s *shared) read(ctx context.Context, key string) (value []byte, now int64, err error) {
	answer, err := readScript.Run(ctx, s.client, key)
	if err != nil {
		return nil, 0, err
	}
	reply, _ := answer.([]any)
	if len(reply) != 3 {
		return nil, 0, errReply
	}
	if text, ok := reply[0].(string); ok {
		value = []byte(text)
	}
	seconds, err1 := number(reply[1])
	micros, err2 := number(reply[2])
	return value, seconds*1000 + micros/1000, errors.Join(err1, err2)
}

func number(word any) (int64, error) {
	text, _ := word.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errReply
	}
	return n, nil
}

// swap replaces old by next, and reports false if the value is no longer old.
func (s *shared) swap(ctx context.Context, key string, old, next []byte, expires int64) (bool, error) {
	swapped, err := swapScript.Run(ctx, s.client, key, old, next, expires)
	return swapped == int64(1), err
}
