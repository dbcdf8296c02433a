package outage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// A fault is what becomes of the calls to the shared history.
type fault int

const (
	none    fault = iota
	dead          // nothing is done, and everybody knows
	silent        // nothing is done, and nobody knows
	unheard       // all is done, and the reply is lost
	late          // all is done, the reply is late, and it is not known to be away
)

var (
	errDead   = errors.New("dead")
	errSilent = errors.New("silent")
	errLate   = errors.New("late")
)

// unavailableIsAway takes every fault for an outage, but a reply that is late.
func unavailableIsAway(err error) bool {
	return !errors.Is(err, errLate) && (errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, verify.ErrUnavailable) || errors.Is(err, idempotency.ErrUnavailable))
}

// A line to what is shared can be made to fail.
type line struct {
	mu    sync.Mutex
	fault fault
}

func (l *line) set(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

func (l *line) now() fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

func (l *line) ready(context.Context) error {
	_, err := over(l, throttle.ErrUnavailable, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// over carries out a call, or not. What fails is an error of the kind.
func over[T any](l *line, kind error, do func() (T, error)) (answer T, err error) {
	switch l.now() {
	case dead:
		return answer, throttle.Unchanged(unavailable(kind, errDead))
	case silent:
		return answer, unavailable(kind, errSilent)
	case unheard:
		_, _ = do()
		return answer, unavailable(kind, errSilent)
	case late:
		_, _ = do()
		return answer, unavailable(kind, errLate)
	}
	return do()
}

func unavailable(kind, cause error) error { return fmt.Errorf("asking: %w: %w", kind, cause) }

// does is over for a call without an answer.
func does(l *line, kind error, do func() error) error {
	_, err := over(l, kind, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// A shared history can be made to fail. It is that of all nodes.
type shared struct {
	line
	outage.Survey
	records []throttle.Admission // that were asked for
	during  func()               // happens once, while the answer to a Take is on its way
}

func (s *shared) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	v, err := over(&s.line, throttle.ErrUnavailable, func() (throttle.Verdict, error) { return s.Survey.Take(ctx, key, id) })
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	return v, err
}

func (s *shared) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	return over(&s.line, throttle.ErrUnavailable, func() (throttle.Verdict, error) { return s.Survey.Peek(ctx, key) })
}

func (s *shared) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	return over(&s.line, throttle.ErrUnavailable, func() (bool, error) { return s.Survey.Release(ctx, key, id) })
}

func (s *shared) Reset(ctx context.Context, key string) (int, error) {
	return over(&s.line, throttle.ErrUnavailable, func() (int, error) { return s.Survey.Reset(ctx, key) })
}

func (s *shared) History(ctx context.Context, key string) (throttle.History, error) {
	return over(&s.line, throttle.ErrUnavailable, func() (throttle.History, error) { return s.Survey.History(ctx, key) })
}

func (s *shared) Record(ctx context.Context, key string, a throttle.Admission) error {
	return does(&s.line, throttle.ErrUnavailable, func() error {
		s.mu.Lock()
		s.records = append(s.records, a)
		s.mu.Unlock()
		return s.Survey.Record(ctx, key, a)
	})
}

// A sharedBook can be made to fail.
type sharedBook struct {
	line
	verify.Book
	now      func() int64
	recorded sync.Map // what was, so that it is recorded once
	during   func()   // happens once, while a code is on its way
}

func (b *sharedBook) Record(ctx context.Context, mailbox string, made verify.Kept) error {
	return does(&b.line, verify.ErrUnavailable, func() error {
		if during := b.during; during != nil {
			b.during = nil
			during()
		}
		if _, again := b.recorded.LoadOrStore(mailbox+string(made.Hash[:]), made); again {
			return nil
		}
		return b.Book.Add(ctx, mailbox, made.Hash, made.Expires-b.now())
	})
}

func (b *sharedBook) Add(ctx context.Context, mailbox string, h verify.Hash, lifetime int64) error {
	return does(&b.line, verify.ErrUnavailable, func() error { return b.Book.Add(ctx, mailbox, h, lifetime) })
}

func (b *sharedBook) Check(ctx context.Context, mailbox string, h verify.Hash) (verify.Result, error) {
	return over(&b.line, verify.ErrUnavailable, func() (verify.Result, error) { return b.Book.Check(ctx, mailbox, h) })
}

func (b *sharedBook) Remove(ctx context.Context, mailbox string, h verify.Hash) error {
	return does(&b.line, verify.ErrUnavailable, func() error { return b.Book.Remove(ctx, mailbox, h) })
}

// ForgetUntil forgets more than it has to: which codes these are is tried with Redis.
func (b *sharedBook) ForgetUntil(ctx context.Context, mailbox string, _ int64) error {
	return b.Forget(ctx, mailbox)
}

func (b *sharedBook) Forget(ctx context.Context, mailbox string) error {
	return does(&b.line, verify.ErrUnavailable, func() error { return b.Book.Forget(ctx, mailbox) })
}

// A sharedKeeper can be made to fail.
type sharedKeeper struct {
	line
	idempotency.Keeper
	before func() // happens once, while a Begin is on its way
	during func() // happens once, while the answer to a Begin is on its way
}

func (k *sharedKeeper) BeginAs(ctx context.Context, lease idempotency.Lease) (idempotency.Outcome, error) {
	return over(&k.line, idempotency.ErrUnavailable, func() (idempotency.Outcome, error) {
		if before := k.before; before != nil {
			k.before = nil
			before()
		}
		o, err := k.Keeper.BeginAs(ctx, lease)
		if during := k.during; during != nil {
			k.during = nil
			during()
		}
		return o, err
	})
}

func (k *sharedKeeper) Finish(ctx context.Context, lease idempotency.Lease, a idempotency.Answer) (bool, error) {
	return over(&k.line, idempotency.ErrUnavailable, func() (bool, error) { return k.Keeper.Finish(ctx, lease, a) })
}

func (k *sharedKeeper) Abandon(ctx context.Context, lease idempotency.Lease) (bool, error) {
	return over(&k.line, idempotency.ErrUnavailable, func() (bool, error) { return k.Keeper.Abandon(ctx, lease) })
}
