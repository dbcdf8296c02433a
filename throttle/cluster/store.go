package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

// A store is what all limiters on the same servers share: the connections, how long a
// call may take, who must confirm an admission and whose clock counts.
type store struct {
	redis   *redisClient
	taker   runner // how takes are run
	timeout time.Duration
	confirm int
	clock   func() int64

	deadlines deadlines
	servers   *serverClocks
}

func openStore(o Options) (*store, error) {
	servers, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	client, err := connect(servers, o.Timeout)
	if err != nil {
		return nil, err
	}
	s := &store{
		redis: client, taker: client.run,
		timeout: o.Timeout, confirm: o.Confirm, clock: o.Clock,
		servers: newServerClocks(),
	}
	if o.Confirm > 0 {
		s.taker = client.runConfirmed(o.Confirm)
	}
	return s, nil
}

// An errand is one call of a limiter: what for, about which key, and until when.
type errand struct {
	ctx        context.Context
	end        func()
	doing, key string
}

func (s *store) begin(ctx context.Context, doing, prefix, key string) (errand, error) {
	if err := throttle.CheckKey(key); err != nil {
		return errand{}, fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return errand{}, unavailable(doing, err)
	}
	ctx, end := s.deadlines.within(ctx, s.timeout)
	return errand{ctx: ctx, end: end, doing: doing, key: prefix + key}, nil
}

// take runs a script that decides, and once more where it was too late by a clock that
// has changed. The numbers are the limits as the script reads them.
func (s *store) take(e errand, by *script, id throttle.ID, numbers any) (saw seen, err error) {
	for range 2 {
		sent := s.servers.here()
		saw, err = s.ask(e, s.taker, by, id.String(), numbers, s.notAfter(e.key, sent))
		if err != nil {
			return seen{}, err
		}
		s.servers.learn(e.key, sent, saw.now)
		if saw.answer != tooLate {
			return saw, nil
		}
	}
	return seen{}, unavailable(e.doing, errTooLate)
}

// notAfter is when the server may give up on a decision that was sent now. One that
// hangs for a while would otherwise charge everybody who has long gone away.
func (s *store) notAfter(key string, sent int64) string {
	now, known := s.servers.there(key, sent)
	if !known || s.clock != nil {
		return ""
	}
	return strconv.FormatInt(now+s.timeout.Milliseconds(), 10)
}

var errTooLate = errors.New("redis came to the decision too late")

// look runs a script that only reads.
func (s *store) look(e errand, by *script) (seen, error) { return s.ask(e, s.redis.run, by) }

// ask runs a script that answers with what it saw, until it is answered.
func (s *store) ask(e errand, run runner, by *script, words ...any) (seen, error) {
	reply, err := s.redis.insist(e.ctx, run, by, e.key, append(words, s.clockWords()...)...)
	if err != nil {
		return seen{}, unavailable(e.doing, err)
	}
	return e.read(by, reply)
}

// release runs a script that gives one admission back.
func (s *store) release(e errand, by *script, words ...any) (bool, error) {
	reply, err := s.redis.insist(e.ctx, s.redis.run, by, e.key, words...)
	if err != nil {
		return false, unavailable(e.doing, err)
	}
	return reply == "1", nil
}

// reset runs a script that forgets the key, once.
func (s *store) reset(e errand, by *script) (seen, error) {
	reply, err := s.redis.run(e.ctx, by, e.key, s.clockWords())
	if err != nil {
		return seen{}, unavailable(e.doing, err)
	}
	return e.read(by, reply)
}

func (e errand) read(by *script, reply string) (seen, error) {
	saw, err := by.read(reply)
	if err != nil {
		return seen{}, unavailable(e.doing, err)
	}
	return saw, nil
}

// clockWords hand a test's clock to a script.
func (s *store) clockWords() []any {
	if s.clock == nil {
		return nil
	}
	return wordsOfClock(s.clock())
}

func unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, throttle.ErrUnavailable, withoutWords(cause))
}
