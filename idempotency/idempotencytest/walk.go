package idempotencytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/idempotency"
)

// walk leads a keeper through random steps and compares every answer with a naive model. A
// failure names the seed and tells what came before. Under -short it goes a fifth of the steps.
func walk(t *testing.T, open Open, seed uint64, steps int) {
	if testing.Short() {
		steps /= 5
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for walked := 0; walked < steps; walked += 500 {
		clock := clocktest.New(start)
		terms := idempotency.Terms{Lease: 1 + random.Int64N(50), Keep: 1 + random.Int64N(200)}
		p := patron{t: t, keeper: open(t, terms, clock.Now), name: newName(), terms: terms}
		w := walker{patron: p, clock: clock, random: random, seed: seed, model: model{terms: terms}}
		for range min(500, steps-walked) {
			w.step()
		}
	}
}

type walker struct {
	patron
	clock   *clocktest.Clock
	random  *rand.Rand
	model   model
	leases  []idempotency.Lease // in the order in which they began
	answers int
	story   []string
	seed    uint64
}

func (w *walker) step() {
	w.moveClock()
	switch dice := w.random.IntN(10); {
	case dice < 5 || len(w.leases) == 0:
		w.stepBegin(w.random.IntN(8) / 7) // mostly the same request
	case dice < 8:
		w.stepFinish(w.oneOfTheLast())
	default:
		w.stepAbandon(w.oneOfTheLast())
	}
}

// moveClock goes on by nothing, by a little, to about the end of what is on record, or
// back. Whether what has ended comes back with the clock is not promised.
func (w *walker) moveClock() {
	switch dice := w.random.IntN(20); {
	case dice < 8:
	case dice < 14:
		w.clock.Add(w.random.Int64N(1 + w.terms.Lease/2))
	case dice == 14 && w.clock.Now() < w.model.ends:
		w.clock.Add(-w.random.Int64N(30))
	default:
		if w.model.there {
			w.clock.Set(max(w.clock.Now(), w.model.ends-w.random.Int64N(2)))
		}
	}
}

// oneOfTheLast is the number of a lease, mostly the last.
func (w *walker) oneOfTheLast() int {
	return len(w.leases) - 1 - w.random.IntN(min(3, len(w.leases)))
}

func (w *walker) stepBegin(request int) {
	want := w.model.begin(len(w.leases), request, w.clock.Now())
	o := w.ask(request)
	got := o.State.String()
	switch o.State {
	case idempotency.Started:
		w.leases = append(w.leases, o.Lease)
	case idempotency.InFlight:
		got += fmt.Sprint(" ", o.RetryAfter)
	case idempotency.Replay:
		got += fmt.Sprint(" ", string(o.Answer.Body))
	}
	w.same(fmt.Sprint("begin ", request), want, got)
}

func (w *walker) stepFinish(lease int) {
	w.answers++
	given := answer(w.answers)
	want := w.model.finish(lease, requestOf(w.leases[lease]), string(given.Body), w.clock.Now())
	kept, err := w.keeper.Finish(context.Background(), w.leases[lease], given)
	w.same(fmt.Sprint("finish ", lease), fmt.Sprint(want, " <nil>"), fmt.Sprint(kept, " ", err))
}

func (w *walker) stepAbandon(lease int) {
	want := w.model.abandon(lease, w.clock.Now())
	freed, err := w.keeper.Abandon(context.Background(), w.leases[lease])
	w.same(fmt.Sprint("abandon ", lease), fmt.Sprint(want, " <nil>"), fmt.Sprint(freed, " ", err))
}

func requestOf(lease idempotency.Lease) int { return int(lease.Body[31]) }

func (w *walker) same(did, want, got string) {
	w.t.Helper()
	w.story = append(w.story, fmt.Sprintf("%d %s: %s", w.clock.Now()-start, did, got))
	if got != want {
		for _, line := range w.story[max(0, len(w.story)-40):] {
			w.t.Log(line)
		}
		w.t.Fatalf("seed %d: want %s", w.seed, want)
	}
}

// A model is the record of one name in plain variables. It shares no code with the rule.
type model struct {
	terms   idempotency.Terms
	there   bool
	lease   int
	request int
	done    bool
	answer  string
	ends    int64
}

// look forgets what has ended.
func (m *model) look(now int64) {
	if m.there && now >= m.ends {
		m.there = false
	}
}

func (m *model) begin(lease, request int, now int64) string {
	gone := *m
	gone.look(now)
	if !gone.there {
		*m = model{terms: m.terms, there: true, lease: lease, request: request, ends: now + m.terms.Lease}
		return "started"
	}
	if m.request != request {
		return "mismatch"
	}
	if m.done {
		return "replay " + m.answer
	}
	return fmt.Sprint("in flight ", m.ends-now)
}

func (m *model) finish(lease, request int, answer string, now int64) bool {
	gone := *m
	gone.look(now)
	if gone.there && m.lease != lease {
		return false
	}
	if gone.there && m.done {
		return true
	}
	*m = model{m.terms, true, lease, request, true, answer, now + m.terms.Keep}
	return true
}

func (m *model) abandon(lease int, now int64) bool {
	gone := *m
	gone.look(now)
	if !gone.there || m.lease != lease || m.done {
		return false
	}
	m.there = false
	return true
}
