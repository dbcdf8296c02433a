package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/verify"
)

// A history is where is kept what was sent, and what may come of it. Its limiters cost
// nothing to make and need no closing: those of one name count together, as far as they
// count in one way.
type history struct {
	mailbox func(throttle.Policy) outage.Survey
	tiers   func(name string, p throttle.Policy) throttle.Recorder
	meter   func(name string, m meter.Meter) throttle.Recorder
	codes   verify.Book
	repeats api.Repeats
	remote  bool                   // a network away
	watch   *outage.Watch          // nil where none goes on without the others
	metrics []prometheus.Collector // that a history in Redis has
	// patience makes a request wait for a server of Redis once; nil where none is asked.
	patience func(context.Context) context.Context
	ready    func(context.Context) error
	close    func(context.Context) error
}

// storePatience is how long to wait for a history that is to say itself whether it is away:
// longer than it waits for Redis, and then for a disk of this node that hangs.
func storePatience(s *config.Config) time.Duration {
	return redisstore.LongestWait(s.RedisTimeout) + 2*time.Second
}

// openHistory opens Redis where its URL is set, else this machine's disk. The policy is
// the one to begin with.
func openHistory(ctx context.Context, s *config.Config, first throttle.Policy, log *slog.Logger) (history, error) {
	if s.RedisURL == "" {
		onDisk, err := openDisk(s, s.DataDir, first, nil, log)
		return onDisk.history, err
	}
	shared, store, err := openShared(ctx, s, first, log)
	if err != nil {
		return shared, err
	}
	if !s.Standby() {
		return refusing(shared, store, log), nil
	}
	both, err := goingOn(s, shared, store, first, log)
	if err != nil {
		return history{}, errors.Join(err, shared.close(ctx))
	}
	return both, nil
}

// guesses counts guesses at codes. No rule or action has such a name.
func (h history) guesses(p throttle.Policy) throttle.Limiter { return h.tiers("guesses", p) }

// A key is in flight for as long as its send can take and what it charged be given back,
// and what is known of it is kept for a day.
var (
	answerTerms = idempotency.Terms{Lease: (sendDeadline + api.LeaseRest).Milliseconds(), Keep: day}
	markTerms   = idempotency.Terms{Lease: day, Keep: day}
)

const day = 24 * 60 * 60 * 1000
