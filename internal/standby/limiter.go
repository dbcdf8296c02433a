package standby

import (
	"context"
	"errors"
	"time"
	"unique"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// home is a throttle.Home that decides by Redis, and by the node's own records while Redis is away.
type home struct {
	*part
	shared *throttle.Limiter // also applies the journal
	own    throttle.Home
}

// Limiter wraps a pair of limiters by one algorithm, one on Redis and one on this node's disk.
// Limiters of one name have the same shared and own records.
func (s *Standby) Limiter(name string, shared, own *throttle.Limiter) *throttle.Limiter {
	h := &home{shared: shared, own: own.Home}
	h.part = &part{Standby: s, name: name, mirrored: true, apply: h.apply}
	s.parts.Store(name, h.part)
	return throttle.New(shared.Algorithm, h)
}

// Do implements throttle.Home. A refusal says that nothing is charged, so it is an error where Redis
// may have charged the id before the node refused it alone. A release that Redis does not answer is
// synced later, if that may be repeated; it is then done, perhaps by another node.
func (h *home) Do(ctx context.Context, key string, op throttle.Op) (r throttle.Reply, err error) {
	unheard := false // Redis may have done it
	alone := func(ctx context.Context) (err error) { r, err = h.alone(ctx, key, op); return err }
	err = h.decide(ctx, key, op.Repeatable(), func() (err error) {
		asked := time.Now()
		r, err = h.shared.Home.Do(ctx, key, op)
		if err != nil {
			unheard = unheard || !errors.Is(err, throttle.ErrUnchanged)
		} else {
			unheard = false
			h.o.Clock.Hear(r.Now, asked)
			h.copy(key, op, r)
		}
		return err
	}, alone)
	if unheard && op.Step == throttle.StepTake && (err == nil && !r.Done || errors.Is(err, throttle.ErrUnchanged)) {
		err = errUnheard
	}
	if err != nil && op.Step == throttle.StepRelease && (op.Repeatable() || errors.Is(err, throttle.ErrUnchanged)) {
		err = h.locked(context.WithoutCancel(ctx), key, alone)
		r.Done = r.Done || op.By.Exact()
	}
	return r, err
}

// copy mirrors what Redis has done.
func (h *home) copy(key string, op throttle.Op, r throttle.Reply) {
	until := int64(0)
	switch op.Step {
	case throttle.StepPeek:
		return
	case throttle.StepTake:
		if !r.Done {
			return
		}
		_, v := op.Take(r.State, r.Now)
		op.Step, op.All = throttle.StepRecord, []throttle.Admission{v.Admission}
		fallthrough
	case throttle.StepRecord:
		until = h.o.Clock.Now() + op.By.Window()
	}
	h.mirror.write(h.keyOf(key), until, func(ctx context.Context) error { _, err := h.own.Do(ctx, key, op); return err })
}

// alone takes a step on the node's own records, and notes in the journal what it did. If the journal does not take it, the
// node is too strict. Redis may have an admission of the journal already: an exact one that is released becomes a release,
// one of a counter is dropped. A counter's release that the node did not find is not noted.
func (h *home) alone(ctx context.Context, key string, op throttle.Op) (r throttle.Reply, err error) {
	if op.Step == throttle.StepReset || op.Step == throttle.StepRecord {
		return r, errAlone
	}
	r, err = h.own.Do(ctx, key, op)
	r.Degraded = true
	k, exact := h.keyOf(key), op.By.Exact()
	switch {
	case err != nil:
	case op.Step == throttle.StepTake && r.Done:
		_, v := op.Take(r.State, r.Now)
		err = h.journal.put(ctx, k, operation{kind: record, by: textOf(op.By), a: v.Admission, until: v.Admission.At + op.By.Window()})
		if err == nil {
			h.admitted.Add(1)
		}
	case op.Step == throttle.StepRelease && (r.Done || exact):
		o := operation{kind: release, by: textOf(op.By), a: op.All[0], until: h.o.Clock.Now() + op.By.Window()}
		admitted, found := h.journal.find(k, func(j operation) bool {
			if exact {
				return j.a.ID == o.a.ID
			}
			return j.kind == record && j.a.At == o.a.At && j.by == o.by // a counter knows times, and no ids
		})
		if found && !exact {
			return r, h.journal.forget(ctx, k, admitted)
		}
		o.order = admitted.order
		err = h.journal.put(ctx, k, o)
	}
	return r, err
}

// apply sends operations to Redis in their order, each by the algorithm that admitted it, and neighbouring admissions by
// one algorithm in one step. A counter's release is forgotten before it is sent, as it must not be sent twice.
func (h *home) apply(ctx context.Context, key string, some []operation) error {
	for len(some) > 0 {
		first, n := some[0], 1
		by, err := throttle.Parse(first.by.Value())
		if err != nil {
			return err
		}
		l := h.shared.With(by)
		if first.kind == record {
			admissions := []throttle.Admission{first.a}
			for ; n < len(some) && some[n].kind == record && some[n].by == first.by; n++ {
				admissions = append(admissions, some[n].a)
			}
			err = l.Record(ctx, key, admissions...)
		} else if l.Algorithm.Exact() || h.journal.forget(ctx, h.keyOf(key), first) == nil { // else the next start sends it
			_, err = l.Release(ctx, key, first.a)
		}
		if err != nil {
			return err
		}
		unwaited, durable := cache.Batch(ctx)
		_ = h.journal.forget(unwaited, h.keyOf(key), some[:n]...)
		if !l.Algorithm.Exact() { // after a crash it counts twice what the disk has not forgotten
			_ = durable(ctx)
		}
		some = some[n:]
	}
	return nil
}

func textOf(a throttle.Algorithm) unique.Handle[string] { return unique.Make(a.String()) }
