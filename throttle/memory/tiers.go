package memory

import (
	"context"
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// Tiers admits sends by a policy, and keeps every send. It implements
// throttle.Historian.
//
// A denial and a Peek take no memory. Histories that have been handed out never change:
// an admission comes behind the last of them, or into a new one that has room for as many
// again.
type Tiers struct {
	policy    throttle.Policy
	longest   *largest[throttle.Policy] // of all that admit on these histories
	histories *table[throttle.History]
}

// NewTiers returns Tiers that nothing is on record of. The zero policy stands for
// throttle.DefaultPolicy, and never for no limit at all.
func NewTiers(p throttle.Policy, o Options) *Tiers {
	if p.IsZero() {
		p = throttle.DefaultPolicy()
	}
	longest := newLargest(p, throttle.Policy.Longest)
	histories := newTable(o.orDefaults(), func(h *throttle.History) int64 { return h.Newest() + longest.get().Longest() })
	return &Tiers{policy: p, longest: longest, histories: histories}
}

// With returns Tiers that admit by another policy, on the same histories: what either
// admits counts for both. A send stays on record for the longest window of all policies
// that were handed in here by then; but of one key no more than the newest
// throttle.MaxLimit do, which is all that any policy asks about.
//
// A policy without tiers would admit everybody. Then that of l stays in force.
func (l *Tiers) With(p throttle.Policy) *Tiers {
	other := *l
	if !p.IsZero() {
		other.policy = p
		l.longest.offer(p)
	}
	return &other
}

// Take admits one send, or says no.
func (l *Tiers) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.WrongID("take")
	}
	if err := throttle.CheckCall(ctx, "take", key); err != nil {
		return throttle.Verdict{}, err
	}
	shard, e, now, err := l.histories.lockOrAdd(key)
	if err != nil {
		return throttle.Verdict{}, throttle.Unchanged(throttle.Unavailable("take", err))
	}
	defer shard.Unlock()
	v := throttle.Decide(l.policy, e.state, now)
	if live := e.state.Within(l.longest.get().Longest(), now); live.Find(id) < 0 {
		if !v.Allowed {
			return v, nil
		}
		next := append(live, throttle.Admission{ID: id, At: e.state.Clock(now)})
		l.keep(shard, e, next[max(0, len(next)-throttle.MaxLimit):])
	}
	return throttle.Admitted(l.policy, e.state, now), nil
}

// Peek answers what Take would.
func (l *Tiers) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if err := throttle.CheckCall(ctx, "peek", key); err != nil {
		return throttle.Verdict{}, err
	}
	history, now := l.read(key)
	return throttle.Decide(l.policy, history, now), nil
}

// Release gives one admission back.
func (l *Tiers) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	if err := throttle.CheckCall(ctx, "release", key); err != nil {
		return false, err
	}
	shard, e, _ := l.histories.lock(key)
	defer shard.Unlock()
	if e == nil {
		return false, nil
	}
	next, released := e.state.Without(id)
	switch {
	case !released:
	case len(next) == 0:
		l.histories.forget(shard, e)
	default:
		l.keep(shard, e, next)
	}
	return released, nil
}

// Reset forgets the key.
func (l *Tiers) Reset(ctx context.Context, key string) (cleared int, err error) {
	if err := throttle.CheckCall(ctx, "reset", key); err != nil {
		return 0, err
	}
	shard, e, now := l.histories.lock(key)
	defer shard.Unlock()
	if e == nil {
		return 0, nil
	}
	cleared = len(l.live(e.state, now))
	l.histories.forget(shard, e)
	return cleared, nil
}

// History returns the sends inside the longest window.
func (l *Tiers) History(ctx context.Context, key string) (throttle.History, error) {
	if err := throttle.CheckCall(ctx, "history", key); err != nil {
		return nil, err
	}
	history, now := l.read(key)
	return slices.Clone(l.live(history, now)), nil
}

// read returns the key's history, which never changes, and the clock.
func (l *Tiers) read(key string) (throttle.History, int64) {
	shard, e, now := l.histories.lock(key)
	defer shard.Unlock()
	if e == nil {
		return nil, now
	}
	return e.state, now
}

func (l *Tiers) live(h throttle.History, now int64) throttle.History {
	return h.Within(l.policy.Longest(), now)
}

// keep puts a history in place of the entry's, and keeps it as long as it counts.
func (l *Tiers) keep(s *shard[throttle.History], e *entry[throttle.History], h throttle.History) {
	e.state = h
	l.histories.keep(s, e)
}
