package cluster

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
)

// A Limiter admits sends by one policy. It implements throttle.Historian and
// throttle.Recorder.
type Limiter struct {
	place
	policy throttle.Policy
	tiers  any // the policy as the scripts read it
}

// New makes a limiter that keeps what is on record in the store. It needs no Close of its
// own, and there may be any number on one store: those of one policy count together.
//
// The policy must be the same for all who share keys: one with shorter windows would
// forget what another still has to know. Tiers makes limiters with keys of their own.
func New(store *redisstore.Store, p throttle.Policy) (*Limiter, error) {
	switch {
	case store == nil:
		return nil, errors.New("opening a limiter: there is no store")
	case p.IsZero():
		return nil, errors.New("opening a limiter: the policy has no tiers")
	}
	store.Use(tierScripts...)
	return &Limiter{place: place{store, store.Prefix()}, policy: p, tiers: packTiers(p)}, nil
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, mailbox string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.WrongID("take")
	}
	e, err := l.begin(ctx, "take", mailbox)
	if err != nil {
		return throttle.Verdict{}, err
	}
	defer e.End()
	saw, err := e.decide(takeScript, id.String(), l.tiers)
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
	e, err := l.begin(ctx, doing, mailbox)
	if err != nil {
		return seen{}, err
	}
	defer e.End()
	return e.look(lookScript)
}

// Record puts on record what was admitted elsewhere; see throttle.Recorder.
func (l *Limiter) Record(ctx context.Context, mailbox string, a throttle.Admission) error {
	if err := throttle.CheckRecord(ctx, mailbox, a); err != nil || a.At < 0 {
		return err
	}
	e, err := l.begin(ctx, "record", mailbox)
	if err != nil {
		return err
	}
	defer e.End()
	_, err = e.decide(recordScript, a.ID.String(), l.policy.Longest(), a.At, throttle.MaxLimit)
	return err
}

// Release gives one admission back.
func (l *Limiter) Release(ctx context.Context, mailbox string, id throttle.ID) (bool, error) {
	e, err := l.begin(ctx, "release", mailbox)
	if err != nil {
		return false, err
	}
	defer e.End()
	return e.release(releaseScript, id.String())
}

// Reset forgets the mailbox. It is not repeated when its answer is lost, and not done when
// nobody waits for it any more: somebody may have been admitted since, and would be forgotten.
func (l *Limiter) Reset(ctx context.Context, mailbox string) (int, error) {
	e, err := l.begin(ctx, "reset", mailbox)
	if err != nil {
		return 0, err
	}
	defer e.End()
	saw, err := e.reset(resetScript)
	if err != nil {
		return 0, err
	}
	return len(saw.sends.Within(l.policy.Longest(), saw.now)), nil
}
