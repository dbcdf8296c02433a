package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/internal/breaker"
)

// Ready reports whether Redis takes writes, by a trial. Where replicas have to confirm a send
// they have to confirm the trial too. A cluster is ready while any of its masters is: calls on
// the keys of the others fail. Servers that rest are asked as well, and one that answers rests
// no more. Once Ready has succeeded, Now is the servers' clock.
func (s *Store) Ready(ctx context.Context) error {
	if s.confirm == 0 {
		return s.ready(ctx)
	}
	q, err := s.question()
	if err != nil {
		return err
	}
	select {
	case <-q.answered:
		return q.err
	case <-ctx.Done():
		return s.unavailable(ctx, "asking redis", ctx.Err())
	}
}

// Whole reports whether all masters answer, where Ready is content with one.
func (s *Store) Whole(asker context.Context) error {
	ctx, end := s.within(asker)
	defer end()
	failed := s.redis.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return master.Ping(ctx).Err()
	})
	if err := errors.Join(failed...); err != nil {
		return s.unavailable(asker, "asking redis", err)
	}
	return nil
}

// A question is one that all who ask while it is open share: one that waits for replicas
// holds a connection for as long as a call may take.
type question struct {
	answered chan struct{}
	err      error // once it is
}

// question is the one that is open, or a new one.
func (s *Store) question() (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		return s.open, nil
	}
	q := &question{answered: make(chan struct{})}
	begun := s.trials.begin(func(ctx context.Context) {
		q.err = s.ready(ctx)
		s.mu.Lock()
		s.open = nil
		s.mu.Unlock()
		close(q.answered)
	})
	if !begun {
		return nil, fmt.Errorf("asking redis: %w: %w", ErrUnavailable, errClosed)
	}
	s.open = q
	return q, nil
}

// ready makes the trials, and is content with one that succeeds.
func (s *Store) ready(asker context.Context) error {
	ctx, end := s.within(asker)
	defer end()
	keys := s.trialKeys()
	outcomes := make(chan error, len(keys))
	for _, key := range keys {
		go func() { outcomes <- s.write(ctx, key) }()
	}
	var err error
	for range keys {
		select {
		case err = <-outcomes:
		case <-asker.Done(): // of which a connection that waits is not told
			err = asker.Err()
		}
		if err == nil {
			s.learnClock(ctx)
			return nil
		}
	}
	s.note(asker, keys[0], err)
	return s.unavailable(asker, "asking redis", err)
}

// trial is the write that a replica can confirm.
var trial = NewScript(`redis.call('SET', KEYS[1], 1, 'PX', 1000) return ''`, func(string) bool { return true })

// write tries a write, of the kind that a send needs.
func (s *Store) write(ctx context.Context, key string) (err error) {
	if s.confirm > 0 || s.vigil != nil {
		_, err = s.runner(trial)(ctx, trial, key, nil)
		err = refused(err)
	} else {
		err = s.redis.client.Set(ctx, key, 1, time.Second).Err()
	}
	if err == nil && !s.circuits.calm() {
		s.circuits.tried(s.redis.addressOf(key), breaker.Answered)
	}
	return err
}

// trialName keeps what is written to see whether Redis takes writes apart from all records,
// which may have any key.
const trialName = "redisstore.trial"

func (s *Store) trialKey(i int) string { return Below(s.prefix, trialName) + strconv.Itoa(i) }

// trialKeys are one for each master, as far as they are known and a few keys meet them.
func (s *Store) trialKeys() (keys []string) {
	const enough = 16 // to meet more than one master
	met := map[string]bool{}
	for i := range enough {
		key := s.trialKey(i)
		address := s.redis.addressOf(key)
		if !met[address] || address == everybody {
			keys = append(keys, key)
		}
		met[address] = true
	}
	return keys
}
