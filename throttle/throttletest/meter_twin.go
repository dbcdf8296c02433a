package throttletest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// A twin is one key at a limiter and beside it the naive model. Whatever is asked is
// asked of both, and their whole answers must be equal.
type twin struct {
	patron
	numbers
	clock *clocktest.Clock
	naive naive
	story []told
	about string // said of a failure
}

// told is what happened, to tell when it goes wrong.
type told struct {
	clock int64
	op    string
	id    throttle.ID
	got   any
}

func newTwin(t testing.TB, open OpenMeter, clock *clocktest.Clock, n numbers) *twin {
	t.Helper()
	p := patron{t: t, limiter: open(t, n.meter(t), clock.Now), mailbox: newMailbox("meter")}
	return &twin{patron: p, numbers: n, clock: clock, naive: n.model(), about: fmt.Sprint(n.meter(t))}
}

func (w *twin) take(id throttle.ID) throttle.Verdict {
	w.t.Helper()
	v := w.patron.take(id)
	w.same("take", id, w.naive.take(w.clock.Now(), id), answerOf(v))
	return v
}

// A counter is a limiter that also counts sends without an id.
type counter interface {
	Count(ctx context.Context, key string) (throttle.Reading, error)
}

// count spells out the whole verdict that a reading is.
func (w *twin) count(by counter) (v throttle.Verdict) {
	w.t.Helper()
	r, err := by.Count(context.Background(), w.mailbox)
	if err != nil {
		w.t.Fatalf("count: %v", err)
	}
	now, quota := w.clock.Now(), w.meter(w.t).Quota()
	r.Spell(&v, &quota, now)
	w.same("count", throttle.ID{}, w.naive.count(now), answerOf(v))
	return v
}

// admit takes with a new id and insists on a yes.
func (w *twin) admit() throttle.ID {
	w.t.Helper()
	id := throttle.NewID()
	if v := w.take(id); !v.Allowed {
		w.fail("not allowed")
	}
	return id
}

// deny takes with a new id and insists on a no.
func (w *twin) deny() throttle.Verdict {
	w.t.Helper()
	v := w.take(throttle.NewID())
	if v.Allowed {
		w.fail("allowed")
	}
	return v
}

// fill admits until there is no more room, and says with which ids.
func (w *twin) fill() (ids []throttle.ID) {
	w.t.Helper()
	for range w.room() {
		ids = append(ids, w.admit())
	}
	w.deny()
	return ids
}

func (w *twin) peek() throttle.Verdict {
	w.t.Helper()
	v := w.patron.peek()
	w.same("peek", throttle.ID{}, w.naive.peek(w.clock.Now()), answerOf(v))
	return v
}

// release gives back, and looks whether it was as if the send had never been there.
func (w *twin) release(id throttle.ID) bool {
	w.t.Helper()
	now := w.clock.Now()
	released := w.patron.release(id)
	w.same("release", id, w.naive.release(now, id), released)
	if released && w.naive.way.used(w.naive.counting(now), w.naive.clock(now)) == 0 {
		// What says nothing any more need not be kept. Only a clock that now stepped
		// back would tell.
		w.naive.sends, w.naive.open = nil, false
	}
	w.peek()
	return released
}

func (w *twin) reset() int {
	w.t.Helper()
	cleared := w.patron.reset()
	w.same("reset", throttle.ID{}, w.naive.reset(w.clock.Now()), cleared)
	return cleared
}

func (w *twin) same(op string, id throttle.ID, want, got any) {
	w.t.Helper()
	w.story = append(w.story, told{w.clock.Now(), op, id, got})
	if got != want {
		w.fail(fmt.Sprintf("want %v", want))
	}
}

func (w *twin) fail(why string) {
	w.t.Helper()
	for _, step := range w.story[max(0, len(w.story)-30):] {
		w.t.Logf("%d %s %s: %v", step.clock, step.op, step.id, step.got)
	}
	w.t.Fatalf("%s: %s", w.about, why)
}
