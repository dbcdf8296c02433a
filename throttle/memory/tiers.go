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
	view      view                      // stands for the policy
	histories *table[sends]
}

// NewTiers returns Tiers that nothing is on record of. The zero policy stands for
// throttle.DefaultPolicy, and never for no limit at all.
func NewTiers(p throttle.Policy, o Options) *Tiers {
	if p.IsZero() {
		p = throttle.DefaultPolicy()
	}
	longest := newLargest(p, throttle.Policy.Longest)
	histories := newTable(o.orDefaults(), kind[sends]{
		until: func(s *sends) int64 { return s.history().Newest() + longest.get().Longest() },
		clear: (*sends).clear,
	})
	return &Tiers{policy: p, longest: longest, view: histories.viewOf(p.String()), histories: histories}
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
		other.policy, other.view = p, l.histories.viewOf(p.String())
		l.longest.offer(p)
	}
	return &other
}

// Take admits one send, or says no.
func (l *Tiers) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	if !id.Valid() {
		return v, throttle.WrongID("take")
	}
	if err := throttle.CheckCall(ctx, "take", key); err != nil {
		return v, err
	}
	k, now := l.histories.fingerprint(key), l.histories.now()
	likely, no, sends := l.refused(k)
	if no.Holds(id, now) {
		l.policy.SpellAgain(&v, no, sends, now)
		return v, nil
	}
	shard, e, now, err := l.histories.lockOrAdd(k, likely, now)
	if err != nil {
		return v, throttle.Unchanged(throttle.Unavailable("take", err))
	}
	defer unlock(shard, e)
	history := e.state.history()
	live := history.Within(l.longest.get().Longest(), now)
	switch l.policy.Spell(&v, history, now); {
	case e.state.has(live, id):
		v.Allowed = true
	case !v.Allowed:
		e.say(l.view.of(k), v.Refusal())
	default:
		e.no.takeBack()
		e.state.add(live, throttle.Admission{ID: id, At: history.Clock(now)})
		l.histories.keep(shard, e)
		v = throttle.Admitted(l.policy, e.state.history(), now)
	}
	return v, nil
}

// refused is the entry that is likely the key's, for lock to look at, the last no that was said
// of the key, if it is known, and the sends that it is about.
func (l *Tiers) refused(k fingerprint) (*entry[sends], throttle.Refusal, throttle.History) {
	likely, no, turn := l.histories.refused(k, l.view)
	if no.Until == 0 {
		return likely, no, nil
	}
	no, sends := sendsOf(likely, no, turn)
	return likely, no, sends
}

// sendsOf is the sends beside a no, and neither where somebody has meanwhile changed them.
func sendsOf(e *entry[sends], no throttle.Refusal, turn uint64) (throttle.Refusal, throttle.History) {
	first, part := e.state.first.Load(), e.state.part()
	if !e.no.still(turn) {
		return throttle.Refusal{}, nil
	}
	return no, part.in(first)
}

// Peek answers what Take would, but for ErrFull, as that of a Limiter.
func (l *Tiers) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	if err := throttle.CheckCall(ctx, "peek", key); err != nil {
		return v, err
	}
	k, now := l.histories.fingerprint(key), l.histories.now()
	likely, no, sends := l.refused(k)
	if no.Lasts(now) {
		l.policy.SpellAgain(&v, no, sends, now)
		return v, nil
	}
	e, now := l.histories.lock(k, likely, now)
	if e == nil {
		l.policy.Spell(&v, nil, now)
		return v, nil
	}
	defer e.Unlock()
	if l.policy.Spell(&v, e.state.history(), now); !v.Allowed {
		e.say(l.view.of(k), v.Refusal())
	}
	return v, nil
}

// Release gives one admission back.
func (l *Tiers) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	if err := throttle.CheckCall(ctx, "release", key); err != nil {
		return false, err
	}
	shard, e, _ := l.histories.lockNow(key)
	defer unlock(shard, e)
	if e == nil {
		return false, nil
	}
	next, released := e.state.history().Without(id)
	switch {
	case !released:
	case len(next) == 0:
		l.histories.forget(shard, e)
	default:
		e.no.takeBack()
		e.state.set(next)
		l.histories.hasten(shard, e)
	}
	return released, nil
}

// Reset forgets the key.
func (l *Tiers) Reset(ctx context.Context, key string) (cleared int, err error) {
	if err := throttle.CheckCall(ctx, "reset", key); err != nil {
		return 0, err
	}
	shard, e, now := l.histories.lockNow(key)
	defer unlock(shard, e)
	if e == nil {
		return 0, nil
	}
	cleared = len(l.live(e.state.history(), now))
	l.histories.forget(shard, e)
	return cleared, nil
}

// History returns the sends inside the longest window.
func (l *Tiers) History(ctx context.Context, key string) (throttle.History, error) {
	if err := throttle.CheckCall(ctx, "history", key); err != nil {
		return nil, err
	}
	shard, e, now := l.histories.lockNow(key)
	defer unlock(shard, e)
	if e == nil {
		return nil, nil
	}
	return slices.Clone(l.live(e.state.history(), now)), nil
}

func (l *Tiers) live(h throttle.History, now int64) throttle.History {
	return h.Within(l.policy.Longest(), now)
}
