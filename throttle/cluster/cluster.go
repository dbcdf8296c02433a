package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
	policy  throttle.Policy
	tiers   any // the policy as the scripts read it
	prefix  string
	timeout time.Duration
	confirm int
	clock   func() int64
	redis   *redisClient
	taker   runner // how takes are run

	deadlines deadlines
	servers   *serverClocks
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
	servers, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("opening a limiter: %w", err)
	}
	client, err := connect(servers, o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("opening a limiter: %w", err)
	}
	l := &Limiter{
		policy: o.Policy, tiers: packTiers(o.Policy), prefix: o.Prefix,
		timeout: o.Timeout, confirm: o.Confirm, clock: o.Clock, redis: client, taker: client.run,
		servers: newServerClocks(),
	}
	if o.Confirm > 0 {
		l.taker = client.runConfirmed(o.Confirm)
	}
	return l, nil
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, mailbox string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.ErrID
	}
	e, err := l.begin(ctx, "take", mailbox)
	if err != nil {
		return throttle.Verdict{}, err
	}
	defer e.end()
	saw, err := l.decide(e, id)
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

// decide runs the script, and once more where it was too late by a clock that has
// changed.
func (l *Limiter) decide(e errand, id throttle.ID) (saw seen, err error) {
	for range 2 {
		sent := l.servers.here()
		saw, err = l.ask(e, l.taker, takeScript, id.String(), l.tiers, l.notAfter(e.key, sent))
		if err != nil {
			return seen{}, err
		}
		l.servers.learn(e.key, sent, saw.now)
		if saw.answer != tooLate {
			return saw, nil
		}
	}
	return seen{}, unavailable(e.doing, errTooLate)
}

// notAfter is when the server may give up on a decision that was sent now. One that
// hangs for a while would otherwise charge everybody who has long gone away.
func (l *Limiter) notAfter(key string, sent int64) string {
	now, known := l.servers.there(key, sent)
	if !known || l.clock != nil {
		return ""
	}
	return strconv.FormatInt(now+l.timeout.Milliseconds(), 10)
}

var errTooLate = errors.New("redis came to the decision too late")

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
	e, err := l.begin(ctx, doing, mailbox)
	if err != nil {
		return seen{}, err
	}
	defer e.end()
	return l.ask(e, l.redis.run, lookScript)
}

// Release gives one admission back.
func (l *Limiter) Release(ctx context.Context, mailbox string, id throttle.ID) (bool, error) {
	e, err := l.begin(ctx, "release", mailbox)
	if err != nil {
		return false, err
	}
	defer e.end()
	reply, err := l.redis.insist(e.ctx, l.redis.run, releaseScript, e.key, id.String())
	if err != nil {
		return false, unavailable(e.doing, err)
	}
	return reply == "1", nil
}

// Reset forgets the mailbox. It is not repeated when its answer is lost: somebody may
// have been admitted since, and would be forgotten.
func (l *Limiter) Reset(ctx context.Context, mailbox string) (int, error) {
	e, err := l.begin(ctx, "reset", mailbox)
	if err != nil {
		return 0, err
	}
	defer e.end()
	reply, err := l.redis.run(e.ctx, resetScript, e.key, l.clockWords())
	if err != nil {
		return 0, unavailable(e.doing, err)
	}
	saw, err := parseSeen(reply)
	if err != nil {
		return 0, unavailable(e.doing, err)
	}
	return len(saw.sends.Within(l.policy.Longest(), saw.now)), nil
}

// Close waits until what was sent is answered or has timed out, and ends the
// connections.
func (l *Limiter) Close() error { return l.redis.close() }

// An errand is one call of a limiter: what for, about which key, and until when.
type errand struct {
	ctx        context.Context
	end        func()
	doing, key string
}

func (l *Limiter) begin(ctx context.Context, doing, mailbox string) (errand, error) {
	if err := throttle.CheckKey(mailbox); err != nil {
		return errand{}, fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return errand{}, unavailable(doing, err)
	}
	ctx, end := l.deadlines.within(ctx, l.timeout)
	return errand{ctx: ctx, end: end, doing: doing, key: l.prefix + mailbox}, nil
}

// ask runs a script that answers with what it saw.
func (l *Limiter) ask(e errand, run runner, s *script, words ...any) (seen, error) {
	reply, err := l.redis.insist(e.ctx, run, s, e.key, append(words, l.clockWords()...)...)
	if err != nil {
		return seen{}, unavailable(e.doing, err)
	}
	saw, err := parseSeen(reply)
	if err != nil {
		return seen{}, unavailable(e.doing, err)
	}
	return saw, nil
}

// clockWords hand a test's clock to a script.
func (l *Limiter) clockWords() []any {
	if l.clock == nil {
		return nil
	}
	return wordsOfClock(l.clock())
}

func unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, throttle.ErrUnavailable, withoutWords(cause))
}
