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
	// URL names the servers; see ParseURL.
	URL    string
	Policy throttle.Policy
	// Prefix begins every key; the default is "mailgate:".
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

// A Limiter admits sends by one policy. It implements throttle.Limiter.
type Limiter struct {
	policy  throttle.Policy
	tiers   string // the policy as the scripts read it
	prefix  string
	timeout time.Duration
	confirm int
	clock   func() int64
	redis   *redisClient
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
		o.Prefix = "mailgate:"
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	servers, err := ParseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("opening a limiter: %w", err)
	}
	client, err := connect(servers, o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("opening a limiter: %w", err)
	}
	return &Limiter{
		policy: o.Policy, tiers: packTiers(o.Policy), prefix: o.Prefix,
		timeout: o.Timeout, confirm: o.Confirm, clock: o.Clock, redis: client,
	}, nil
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, mailbox string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.ErrID
	}
	run := l.redis.run
	if l.confirm > 0 {
		run = l.redis.runConfirmed(l.confirm)
	}
	reply, err := l.ask(ctx, "take", mailbox, run, takeScript, id.String(), l.tiers)
	if err != nil {
		return throttle.Verdict{}, err
	}
	switch reply.answer {
	case admitted:
		return throttle.Admitted(l.policy, reply.sends.With(l.policy, id, reply.now), reply.now), nil
	case admittedBefore:
		return throttle.Admitted(l.policy, reply.sends, reply.now), nil
	}
	return throttle.Decide(l.policy, reply.sends, reply.now), nil
}

// Peek answers what Take would.
func (l *Limiter) Peek(ctx context.Context, mailbox string) (throttle.Verdict, error) {
	reply, err := l.ask(ctx, "peek", mailbox, l.redis.run, lookScript)
	if err != nil {
		return throttle.Verdict{}, err
	}
	return throttle.Decide(l.policy, reply.sends, reply.now), nil
}

// Release gives one admission back.
func (l *Limiter) Release(ctx context.Context, mailbox string, id throttle.ID) (bool, error) {
	if err := begin(ctx, "release", mailbox); err != nil {
		return false, err
	}
	reply, err := l.redis.within(ctx, l.timeout, l.redis.run, releaseScript, l.prefix+mailbox, id.String())
	if err != nil {
		return false, unavailable("release", err)
	}
	return reply == "1", nil
}

// Reset forgets the mailbox.
func (l *Limiter) Reset(ctx context.Context, mailbox string) (int, error) {
	reply, err := l.ask(ctx, "reset", mailbox, l.redis.run, resetScript)
	if err != nil {
		return 0, err
	}
	return len(reply.sends.Within(l.policy.Longest(), reply.now)), nil
}

// History returns the sends inside the longest window.
func (l *Limiter) History(ctx context.Context, mailbox string) (throttle.History, error) {
	reply, err := l.ask(ctx, "history", mailbox, l.redis.run, lookScript)
	if err != nil {
		return nil, err
	}
	return reply.sends.Within(l.policy.Longest(), reply.now), nil
}

// Close ends the connections. Calls under way fail.
func (l *Limiter) Close() error { return l.redis.close() }

// ask runs a script that answers with what it saw.
func (l *Limiter) ask(ctx context.Context, doing, mailbox string, run runner, s *script, args ...any) (seen, error) {
	if err := begin(ctx, doing, mailbox); err != nil {
		return seen{}, err
	}
	if l.clock != nil {
		args = append(args, clockArgs(l.clock())...)
	}
	reply, err := l.redis.within(ctx, l.timeout, run, s, l.prefix+mailbox, args...)
	if err != nil {
		return seen{}, unavailable(doing, err)
	}
	saw, err := parseSeen(reply)
	if err != nil {
		return seen{}, unavailable(doing, err)
	}
	return saw, nil
}

func begin(ctx context.Context, doing, mailbox string) error {
	if err := throttle.CheckMailbox(mailbox); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return unavailable(doing, err)
	}
	return nil
}

func unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, throttle.ErrUnavailable, cause)
}
