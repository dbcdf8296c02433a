package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

// DefaultTimeout is how long a call may take when Options.Timeout is zero.
const DefaultTimeout = 250 * time.Millisecond

// Options say where Redis is, what to admit and how sure to be.
type Options struct {
	// URL names the servers:
	//
	//	redis://user:password@host:6379/0
	//	redis+sentinel://user:password@host1:26379,host2:26379/master-name/0
	//	redis+cluster://user:password@host1:6379,host2:6379
	//
	// With rediss in front the connections are TLS; ?ca= names a PEM file with the
	// authorities to trust instead of the system's. Sentinels with a password of their
	// own take ?sentinel_user= and ?sentinel_password=.
	URL string
	// Policy must be the same for all who share keys: one with shorter windows would
	// forget what another still has to know.
	Policy throttle.Policy
	// Prefix begins every key; the default is "mailgate:{}". The empty braces keep
	// braces in an address from choosing the server that the mailbox lies on.
	Prefix string
	// Timeout is the longest a call may take; the default is DefaultTimeout.
	Timeout time.Duration
	// Confirm is how many replicas must have an admission before it is a yes. With 0
	// the master alone is enough.
	Confirm int
	// Clock replaces the servers' clock. It is for tests: in production the clocks of
	// callers differ, and one that runs ahead would erase live histories.
	Clock func() int64
}

// A Limiter admits sends by one policy. It implements throttle.Historian.
type Limiter struct {
	store  *store
	policy throttle.Policy
	tiers  any // the policy as the scripts read it
	prefix string
}

// New makes the limiter. It does not wait for Redis: see Prepare.
func New(o Options) (*Limiter, error) {
	if o.Policy.IsZero() {
		return nil, errors.New("opening a limiter: the policy has no tiers")
	}
	if o.Confirm < 0 || o.Timeout < 0 {
		return nil, errors.New("opening a limiter: neither Confirm nor Timeout can be negative")
	}
	if o.Prefix == "" {
		o.Prefix = "mailgate:{}"
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	store, err := openStore(o)
	if err != nil {
		return nil, fmt.Errorf("opening a limiter: %w", err)
	}
	return &Limiter{store: store, policy: o.Policy, tiers: packTiers(o.Policy), prefix: o.Prefix}, nil
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, mailbox string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.ErrID
	}
	e, err := l.store.begin(ctx, "take", l.prefix, mailbox)
	if err != nil {
		return throttle.Verdict{}, err
	}
	defer e.end()
	saw, err := l.store.take(e, takeScript, id, l.tiers)
	if err != nil {
		return throttle.Verdict{}, err
	}
	switch saw.answer {
	case admitted:
		return throttle.Admitted(l.policy, saw.sends.With(l.policy, id, saw.now), saw.now), nil
	case admittedBefore:
		return throttle.Admitted(l.policy, saw.sends, saw.now), nil
	}
	return throttle.Decide(l.policy, saw.sends, saw.now), nil
}

// Peek answers what Take would.
func (l *Limiter) Peek(ctx context.Context, mailbox string) (throttle.Verdict, error) {
	saw, err := l.look(ctx, "peek", mailbox)
	if err != nil {
		return throttle.Verdict{}, err
	}
	return throttle.Decide(l.policy, saw.sends, saw.now), nil
}

// History returns the sends inside the longest window.
func (l *Limiter) History(ctx context.Context, mailbox string) (throttle.History, error) {
	saw, err := l.look(ctx, "history", mailbox)
	if err != nil {
		return nil, err
	}
	return saw.sends.Within(l.policy.Longest(), saw.now), nil
}

func (l *Limiter) look(ctx context.Context, doing, mailbox string) (seen, error) {
	e, err := l.store.begin(ctx, doing, l.prefix, mailbox)
	if err != nil {
		return seen{}, err
	}
	defer e.end()
	return l.store.look(e, lookScript)
}

// Release gives one admission back.
func (l *Limiter) Release(ctx context.Context, mailbox string, id throttle.ID) (bool, error) {
	e, err := l.store.begin(ctx, "release", l.prefix, mailbox)
	if err != nil {
		return false, err
	}
	defer e.end()
	return l.store.release(e, releaseScript, id.String())
}

// Reset forgets the mailbox. It is not repeated when its answer is lost: somebody may
// have been admitted since, and would be forgotten.
func (l *Limiter) Reset(ctx context.Context, mailbox string) (int, error) {
	e, err := l.store.begin(ctx, "reset", l.prefix, mailbox)
	if err != nil {
		return 0, err
	}
	defer e.end()
	saw, err := l.store.reset(e, resetScript)
	if err != nil {
		return 0, err
	}
	return len(saw.sends.Within(l.policy.Longest(), saw.now)), nil
}

// Close waits until what was sent is answered or has timed out, and ends the
// connections, also those of the limiters that Meter and Tiers have made.
func (l *Limiter) Close() error { return l.store.redis.close() }
