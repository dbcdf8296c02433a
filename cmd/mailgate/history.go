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

// A history keeps what was sent, codes and answers. Its limiters are cheap to make and need
// no closing: those of one name share their counts if they count the same way.
type history struct {
	mailbox func(throttle.Policy) outage.Survey
	tiers   func(name string, p throttle.Policy) throttle.Recorder
	meter   func(name string, m meter.Meter) throttle.Recorder
	codes   verify.Book
	repeats api.Repeats
	remote  bool                   // reached over a network
	watch   *outage.Watch          // nil if the node does not continue alone
	metrics []prometheus.Collector // of a history in Redis
	// patience makes a request wait for a hanging Redis once; nil without Redis.
	patience func(context.Context) context.Context
	ready    func(context.Context) error
	close    func(context.Context) error
}

// storePatience is how long to wait for an answer of the history. It is longer than the
// history itself waits for Redis, and then for a disk that hangs.
func storePatience(s *config.Config) time.Duration {
	return redisstore.LongestWait(s.RedisTimeout) + 2*time.Second
}

// openHistory opens Redis if its URL is set, else the data directory. The policy is the one
// to start with.
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

// guesses counts guesses at codes. No rule or action can have this name.
func (h history) guesses(p throttle.Policy) throttle.Limiter { return h.tiers("guesses", p) }

// An Idempotency-Key is in flight for as long as its send and a refund can take. Its answer is
// kept for a day.
var (
	answerTerms = idempotency.Terms{Lease: (sendDeadline + api.LeaseRest).Milliseconds(), Keep: day}
	markTerms   = idempotency.Terms{Lease: day, Keep: day}
)

const day = 24 * 60 * 60 * 1000
