package verifytest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/verify"
)

// walk leads a book through random steps and compares every answer with a naive model. A
// failure names the seed and tells what came before. Under -short it goes a fifth of the steps.
func walk(t *testing.T, open Open, seed uint64, steps int) {
	if testing.Short() {
		steps /= 5
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for walked := 0; walked < steps; walked += 500 {
		p, clock := begin(t, open)
		w := walker{patron: p, clock: clock, random: random, seed: seed}
		w.lifetime = []int64{3, 1000, verify.DefaultLifetime}[random.IntN(3)]
		for range min(500, steps-walked) {
			w.step()
		}
	}
}

type walker struct {
	patron
	clock    *clocktest.Clock
	random   *rand.Rand
	model    model
	lifetime int64 // about how long codes live
	story    []string
	seed     uint64
}

func (w *walker) step() {
	w.moveClock()
	n := w.random.IntN(24)
	switch dice := w.random.IntN(40); {
	case dice < 26:
		lifetime := 1 + w.random.Int64N(w.lifetime)
		if dice < 13 {
			lifetime = w.lifetime // so that several expire at once
		}
		w.tell(fmt.Sprintf("add %d for %d", n, lifetime))
		w.add(n, lifetime)
		w.model.add(n, w.clock.Now(), lifetime)
	case dice < 31:
		w.same(n)
	case dice < 37:
		w.same(100 + n) // never on record
	case dice < 39:
		w.tell(fmt.Sprintf("remove %d", n))
		w.remove(n)
		w.model.remove(n, w.clock.Now())
	default:
		w.tell("forget")
		w.forget()
		w.model = model{}
	}
}

// moveClock goes on by nothing, by a little, to about the end of a life, or back.
func (w *walker) moveClock() {
	switch dice := w.random.IntN(20); {
	case dice < 8:
	case dice < 16:
		w.clock.Add(w.random.Int64N(1 + w.lifetime/8))
	case dice == 16:
		w.clock.Add(-w.random.Int64N(1 + w.lifetime))
	default:
		if n := len(w.model.kept); n > 0 {
			w.clock.Set(w.model.kept[w.random.IntN(n)].expires - w.random.Int64N(2))
		}
	}
}

func (w *walker) same(n int) {
	w.t.Helper()
	want, got := w.model.check(n, w.clock.Now()), w.check(n)
	w.tell(fmt.Sprintf("check %d: %v", n, got))
	if got != want {
		for _, line := range w.story[max(0, len(w.story)-40):] {
			w.t.Log(line)
		}
		w.t.Fatalf("seed %d: want %v", w.seed, want)
	}
}

func (w *walker) tell(what string) {
	w.story = append(w.story, fmt.Sprintf("%d %s", w.clock.Now()-start, what))
}

// A model keeps codes in the order they came and looks through all of them each time. It
// shares no code with the rule.
type model struct{ kept []modelCode }

type modelCode struct {
	number  int
	expires int64
}

func (m *model) drop(gone func(modelCode) bool) {
	var rest []modelCode
	for _, c := range m.kept {
		if !gone(c) {
			rest = append(rest, c)
		}
	}
	m.kept = rest
}

func (m *model) add(n int, now, lifetime int64) {
	expires := now + lifetime
	m.drop(func(c modelCode) bool { return c.expires <= now })
	for _, c := range m.kept {
		if c.number == n && c.expires > expires {
			expires = c.expires
		}
	}
	m.drop(func(c modelCode) bool { return c.number == n })
	if len(m.kept) == 16 {
		first := m.kept[0]
		for _, c := range m.kept {
			if c.expires < first.expires || c.expires == first.expires && c.number < first.number {
				first = c
			}
		}
		m.drop(func(c modelCode) bool { return c == first })
	}
	m.kept = append(m.kept, modelCode{n, expires})
}

func (m *model) remove(n int, now int64) {
	m.drop(func(c modelCode) bool { return c.expires <= now || c.number == n })
}

func (m *model) check(n int, now int64) verify.Result {
	m.drop(func(c modelCode) bool { return c.expires <= now })
	if len(m.kept) == 0 {
		return verify.Expired
	}
	for _, c := range m.kept {
		if c.number == n {
			m.kept = nil
			return verify.Correct
		}
	}
	return verify.Incorrect
}
