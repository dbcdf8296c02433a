package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A vigil knows since when Redis cannot be used, and by a write of its own when it can
// again. A call that succeeds does not tell: one that only looks is answered by a server
// that takes no writes.
type vigil struct {
	began func(cause error)
	ended func(lasted time.Duration)

	mu    sync.Mutex
	since time.Time       // zero while it can be used
	notes uint64          // how often it could not
	away  map[string]bool // the servers that it was about
}

// Watch has began called when Redis cannot be used: it is not reached, takes no writes or has
// too few replicas. Ended is called when it can be used again. Each is called once an outage,
// however many calls fail, and neither may call the store. Only calls and Ready find out that
// an outage begins. Watch comes before the first of them.
func (s *Store) Watch(began func(cause error), ended func(lasted time.Duration)) {
	s.vigil = &vigil{began: began, ended: ended, away: map[string]bool{}}
}

// AwaySince is since when Redis cannot be used, the zero time while it can. It is known
// only under Watch.
func (s *Store) AwaySince() time.Time {
	if s.vigil == nil {
		return time.Time{}
	}
	s.vigil.mu.Lock()
	defer s.vigil.mu.Unlock()
	return s.vigil.since
}

// unusable reports whether the error of a call says that Redis cannot be used, and not that
// something is wrong with one record, or with this process.
func unusable(err error) bool {
	return err != nil && !errors.Is(err, errCrowded) && (!isReply(err) || Undone(err) || errors.Is(err, errUnconfirmed))
}

// note counts a call that failed as Redis cannot be used.
func (s *Store) note(caller context.Context, key string, err error) {
	v := s.vigil
	if v == nil || !unusable(err) || gaveUp(caller) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away[s.redis.addressOf(key)] = true
	v.notes++
	if v.since.IsZero() && s.trials.begin(s.awaitReturn) {
		v.since = time.Now()
		v.began(s.told(caller, err))
	}
}

// trialEvery is how often that is tried.
const trialEvery = 500 * time.Millisecond

// awaitReturn tries until the outage is over, or the store closes.
func (s *Store) awaitReturn(ctx context.Context) {
	pause := time.NewTicker(trialEvery)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if s.returned(ctx) {
			return
		}
	}
}

// returned ends the outage if each server that it was about takes a write, and no call has
// met with it meanwhile.
func (s *Store) returned(ctx context.Context) bool {
	v := s.vigil
	v.mu.Lock()
	notes, keys := v.notes, []string{}
	for address := range v.away {
		keys = append(keys, s.keyAt(address))
	}
	v.mu.Unlock()
	for _, key := range keys {
		if s.takesWrites(ctx, key) != nil {
			return false
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.notes != notes {
		return false
	}
	v.ended(time.Since(v.since))
	v.since, v.away = time.Time{}, map[string]bool{}
	return true
}

func (s *Store) takesWrites(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.try(ctx, ctx, key)
}

// keyAt is a trial's key that lies on the server, or on any if it is a master no more.
func (s *Store) keyAt(address string) string {
	const enough = 1000
	for i := range enough {
		if key := s.trialKey(i); s.redis.addressOf(key) == address {
			return key
		}
	}
	return s.trialKey(0)
}
