package outage

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/throttle"
)

// A Limiter admits by the shared history, and by the node's own while that is away.
type Limiter struct {
	*account
	shared, own throttle.Recorder
	longest     int64
}

// Limiter makes one of a pair that count alike: the shared one and the node's own, whose
// clock is Options.Now. Limiters of one name share what is on record, and may be views by
// different limits. What was admitted alone is recorded through the one that was made last,
// so a view that refuses earlier is made before one that does not.
//
// A send counts for longest milliseconds, at the most. A shared history that keeps every send
// is told of many at a time. One that keeps counts is told of one after the other, oldest
// first, or of many in one step: it remembers when the newest came, and so puts those of other
// nodes among them.
func (w *Watch) Limiter(name string, longest int64, shared, own throttle.Recorder) *Limiter {
	l := &Limiter{shared: shared, own: own, longest: longest}
	_, everySend := shared.(throttle.Historian)
	l.account = w.account(name, !everySend, l.pay)
	l.noting.Store(&own)
	if many, ok := shared.(bulk); ok {
		all := func(ctx context.Context, key string, some []debt) error { return recordAll(ctx, many, key, some) }
		l.payRecords.Store(&all)
	}
	return l
}

// bulk is what can be told of many admissions at once, as if of one after the other. What an
// error leaves open is safe to repeat.
type bulk interface {
	RecordAll(ctx context.Context, key string, all []throttle.Admission) error
}

func recordAll(ctx context.Context, to bulk, key string, some []debt) error {
	all := make([]throttle.Admission, len(some))
	for i, d := range some {
		all[i] = throttle.Admission{ID: throttle.ID([]byte(d.what)), At: d.at}
	}
	return to.RecordAll(ctx, key, all)
}

// pay tells the shared history of an admission, or of one that was given back.
func (l *Limiter) pay(ctx context.Context, key string, d debt) (err error) {
	id := throttle.ID([]byte(d.what))
	if d.step == record {
		return l.shared.Record(ctx, key, throttle.Admission{ID: id, At: d.at})
	}
	_, err = l.shared.Release(ctx, key, id)
	return err
}

// Take admits one send, or says no.
func (l *Limiter) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if !id.Valid() {
		return throttle.Verdict{}, throttle.WrongID("take")
	}
	if err := throttle.CheckCall(ctx, "take", key); err != nil {
		return throttle.Verdict{}, err
	}
	turn := l.turn(key)
	const tries = 3
	for try := range tries {
		turn.Lock() // whoever decides alone right now owes before this goes on
		taken := turn.taken.Load()
		turn.Unlock()
		v, err := l.takeShared(ctx, key, id)
		if err != nil {
			if try > 0 {
				err = throttle.Unproven(err) // it knows nothing of the charge before
			}
			return l.takeAlone(ctx, key, id, err)
		}
		if !v.Allowed {
			return v, nil
		}
		l.mirror(ctx, key, throttle.Admission{ID: id, At: v.Now})
		if turn.taken.Load() == taken {
			return v, nil
		}
		// Meanwhile this node has admitted somebody alone, and the shared history did not
		// know. So the place goes back and is asked for again.
		if _, err := l.Release(ctx, key, id); err != nil {
			return throttle.Verdict{}, throttle.Unproven(err)
		}
	}
	return l.takeAlone(ctx, key, id, throttle.Unavailable("take", errOwes))
}

// takeShared has the shared history decide, which is told all before.
func (l *Limiter) takeShared(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if err := l.settled(ctx, key); err != nil {
		return throttle.Verdict{}, unsettled("take", err)
	}
	v, err := l.shared.Take(ctx, key, id)
	if err == nil {
		l.watch.heard()
	}
	return v, err
}

// unsettled is the error of a call whose key could not be settled first, so that the shared
// history was not asked.
func unsettled(doing string, err error) error {
	if !errors.Is(err, throttle.ErrUnavailable) {
		err = throttle.Unavailable(doing, err)
	}
	return throttle.Unchanged(err)
}

// takeAlone has the node's own history decide, after the shared one could not. What it
// admits is owed before it is a yes.
func (l *Limiter) takeAlone(ctx context.Context, key string, id throttle.ID, cause error) (throttle.Verdict, error) {
	if err := l.goesOn(ctx, key, cause); err != nil {
		return throttle.Verdict{}, err
	}
	turn := l.turn(key)
	turn.Lock()
	defer turn.Unlock()
	turn.taken.Add(1)
	v, err := l.own.Take(ctx, key, id)
	if err != nil {
		return throttle.Verdict{}, both(cause, err)
	}
	v.Degraded = true
	if !v.Allowed {
		if !l.watch.undone(cause) {
			l.disown(key, id)
		}
		return v, nil
	}
	if err := l.admit(key, throttle.Admission{ID: id, At: v.Now}); err != nil {
		_, _ = l.own.Release(context.WithoutCancel(ctx), key, id) // at worst the node is too strict
		return throttle.Verdict{}, both(cause, err)
	}
	l.watch.admitted.Add(1)
	return v, nil
}

// admit notes what this node has admitted alone. One that is owed already keeps its time.
func (l *Limiter) admit(key string, a throttle.Admission) error {
	defer l.watch.rouse()
	what := a.ID.String()
	return l.watch.ledger.change(l.holder(key), what, func(old debt, found bool) (debt, bool) {
		if found && old.step == record {
			return old, true
		}
		return debt{step: record, what: what, at: a.At, until: a.At + l.longest}, true
	})
}

// mostDisowned is how many reservations of a key are remembered that the shared history may
// have admitted unheard, and this node has refused. It admits no more than its limit, so
// few of many are there; one that is forgotten stays charged until it has left.
const mostDisowned = 64

// disown has a reservation released that was refused here, as nobody knows whether the
// shared history has admitted it.
func (l *Limiter) disown(key string, id throttle.ID) {
	ledger := l.watch.ledger
	if ledger.number(l.holder(key)) < mostDisowned && !ledger.bound.met.Load() {
		_ = l.owe(key, l.releaseOf(id)) // a charge without a mail, if it cannot be noted
	}
}

func (l *Limiter) releaseOf(id throttle.ID) debt {
	return debt{step: release, what: id.String(), until: l.watch.o.Now() + l.longest}
}

// mirror notes for the node itself what the shared history has admitted. That it cannot be
// noted, or not soon, takes nothing from the admission; but then the own history does not
// know all.
func (l *Limiter) mirror(ctx context.Context, key string, a throttle.Admission) {
	ends, err := l.watch.scribe.write(func() error { return l.own.Record(context.WithoutCancel(ctx), key, a) })
	if err == nil {
		return
	}
	l.watch.unnoted.Add(1)
	m := missing{key, a.ID}
	first := l.lacks(m, counts{a.At, l.watch.o.Now() + l.longest, ends})
	if ends != nil {
		go l.await(l.own, m, ends)
	}
	if first {
		l.watch.o.Log.Error("what was admitted cannot be noted on this node, so in an outage it does not go on alone until that can be, or has left its windows",
			"what", l.name, "cause", err)
	}
}

// goesOn is nil where the node is to answer a call that failed, and else the call's error: a
// disk that keeps it from answering is to be heard of, not the shared history alone.
func (l *Limiter) goesOn(ctx context.Context, key string, cause error) error {
	if !l.account.goesOn(ctx, key, cause, l.doubt(key)) {
		return cause
	}
	if !l.whole() {
		return both(cause, errGaps)
	}
	return nil
}

func (l *Limiter) doubt(key string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.shared.Peek(ctx, key)
		return err
	}
}

// Peek answers what Take would.
func (l *Limiter) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	err = l.look(ctx, "peek", key, func(at throttle.Recorder) error {
		v, err = at.Peek(ctx, key)
		v.Degraded = err == nil && at == l.own
		return err
	})
	return v, err
}

// look has the shared history asked, or else the own one.
func (l *Limiter) look(ctx context.Context, doing, key string, ask func(at throttle.Recorder) error) error {
	if err := throttle.CheckCall(ctx, doing, key); err != nil {
		return err
	}
	err := l.settled(ctx, key)
	if err == nil {
		if err = ask(l.shared); err == nil {
			l.watch.heard()
			return nil
		}
	} else {
		err = unsettled(doing, err)
	}
	if err := l.goesOn(ctx, key, err); err != nil {
		return err
	}
	if failed := ask(l.own); failed != nil {
		return both(err, failed)
	}
	return nil
}

// Release gives the admission back, whether the shared history answers now or later. Until it does,
// whether there was one is what this node knows of it; where its disk does not say, there was.
func (l *Limiter) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	if err := throttle.CheckCall(ctx, "release", key); err != nil {
		return false, err
	}
	// Forgotten first, or it could be noted in between. What cannot be taken off the own
	// history makes this node stricter, and nothing worse.
	l.dismiss(missing{key, id})
	had, unknown := l.releaseOwn(ctx, key, id)
	if l.watch.ledger.number(l.holder(key)) > 0 {
		if owed, err := l.takeBack(key, id); owed || err != nil {
			return owed, err
		}
	}
	released, err := l.shared.Release(ctx, key, id)
	if err == nil || !id.Valid() {
		return released, err
	}
	if !l.owes(ctx, key, err, l.doubt(key)) {
		return false, err
	}
	if failed := l.owe(key, l.releaseOf(id)); failed != nil {
		return false, both(err, failed)
	}
	return had || unknown != nil, nil
}

// releaseOwn takes an admission off the own history, and reports whether it was there.
func (l *Limiter) releaseOwn(ctx context.Context, key string, id throttle.ID) (had bool, err error) {
	return l.watch.scribe.remove(func() (bool, error) { return l.own.Release(context.WithoutCancel(ctx), key, id) })
}

// takeBack turns an admission that is owed into its release: the reply may have been lost
// after it was recorded all the same.
func (l *Limiter) takeBack(key string, id throttle.ID) (owed bool, err error) {
	err = l.watch.ledger.change(l.holder(key), id.String(), func(old debt, found bool) (debt, bool) {
		if owed = found && old.step == record; owed {
			return l.releaseOf(id), true
		}
		return old, found
	})
	if err != nil {
		return false, throttle.Unavailable("release", err)
	}
	if owed {
		l.watch.givenBack.Add(1)
	}
	return owed, nil
}

// Reset forgets the key here and there. It cannot be promised for later: without the shared
// history it is an error, and changes nothing unless only the answer was lost.
func (l *Limiter) Reset(ctx context.Context, key string) (int, error) {
	if err := throttle.CheckCall(ctx, "reset", key); err != nil {
		return 0, err
	}
	if err := l.settled(ctx, key); err != nil {
		return 0, unsettled("reset", err)
	}
	cleared, err := l.shared.Reset(ctx, key)
	if err != nil {
		if ctx.Err() == nil && l.watch.o.Away(err) {
			l.watch.note(err, nil)
		}
		return 0, err
	}
	l.dismissAll(key)
	_, err = l.own.Reset(context.WithoutCancel(ctx), key)
	return cleared, err
}

// Record puts on record what was admitted elsewhere, in the shared history and the own one.
func (l *Limiter) Record(ctx context.Context, key string, a throttle.Admission) error {
	if err := l.shared.Record(ctx, key, a); err != nil {
		return err
	}
	l.mirror(ctx, key, a)
	return nil
}
