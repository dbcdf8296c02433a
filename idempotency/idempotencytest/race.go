package idempotencytest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
)

const (
	racers = 64
	rounds = 100
)

// raceToBegin lets 64 send one request at once: one of them is told to do it.
func raceToBegin(t *testing.T, open Open) {
	p, _ := begin(t, open)
	for round := range rounds {
		p.name = newName()
		counts := p.atOnce(func(q patron, _ int) idempotency.State { return q.ask(1).State })
		if counts[idempotency.Started] != 1 || counts[idempotency.InFlight] != racers-1 {
			t.Fatalf("round %d: %v, want one started, and in flight for the others", round, counts)
		}
	}
}

// raceForALostLease lets 64 send again what somebody has left lying, half of them another
// request under the same key: one of them is told to do it.
func raceForALostLease(t *testing.T, open Open) {
	p, clock := begin(t, open)
	for round := range rounds {
		p.name = newName()
		p.started(1)
		clock.Add(p.terms.Lease)
		counts := p.atOnce(func(q patron, racer int) idempotency.State { return q.ask(racer % 2).State })
		if counts[idempotency.Started] != 1 || counts[idempotency.InFlight] != racers/2-1 || counts[idempotency.Mismatch] != racers/2 {
			t.Fatalf("round %d: %v, want one started", round, counts)
		}
	}
}

// raceToTheEnd lets 64 ask until they have an answer. The first who does it gives up, the
// second has an answer: the request is done twice, and all the others get that answer.
func raceToTheEnd(t *testing.T, open Open) {
	p, _ := begin(t, open)
	for round := range rounds {
		p.name = newName()
		var done atomic.Int64
		p.atOnce(func(q patron, _ int) idempotency.State {
			for {
				o := q.ask(1)
				switch {
				case o.State == idempotency.Started && done.Add(1) == 1:
					q.abandon(o.Lease, true)
				case o.State == idempotency.Started:
					q.finish(o.Lease, answer(round), true)
				case o.State == idempotency.Replay:
					if !same(o.Answer, answer(round)) {
						t.Errorf("round %d: replay of %q", round, o.Answer.Body)
					}
					return o.State
				case o.State == idempotency.Mismatch:
					t.Errorf("round %d: mismatch", round)
					return o.State
				}
			}
		})
		if done.Load() != 2 {
			t.Fatalf("round %d: done %d times, want 2", round, done.Load())
		}
	}
}

// raceOfLateAnswers lets 64 whose leases have ended finish at once: one answer is kept,
// and it is the one whose holder was told so.
func raceOfLateAnswers(t *testing.T, open Open) {
	p, clock := begin(t, open)
	for round := range rounds / 10 {
		p.name = newName()
		var leases [racers]idempotency.Lease
		for i := range leases {
			leases[i] = p.started(1)
			clock.Add(p.terms.Lease)
		}
		var winner, kept atomic.Int64
		p.atOnce(func(q patron, racer int) idempotency.State {
			ok, err := q.keeper.Finish(t.Context(), leases[racer], answer(racer))
			if err != nil {
				t.Errorf("finish: %v", err)
			}
			if ok {
				kept.Add(1)
				winner.Store(int64(racer))
			}
			return idempotency.Started
		})
		if kept.Load() != 1 {
			t.Fatalf("round %d: %d answers were kept, want 1", round, kept.Load())
		}
		p.replay(1, answer(int(winner.Load())))
	}
}

// atOnce lets all racers go at one moment, and counts what they come back with.
func (p patron) atOnce(race func(q patron, racer int) idempotency.State) map[idempotency.State]int {
	var (
		done   sync.WaitGroup
		states [racers]idempotency.State
		ready  = make(chan struct{})
	)
	for racer := range racers {
		done.Go(func() {
			<-ready
			states[racer] = race(p, racer)
		})
	}
	close(ready)
	done.Wait()
	counts := map[idempotency.State]int{}
	for _, state := range states {
		counts[state]++
	}
	return counts
}
