package verifytest

import (
	"sync"
	"testing"

	"github.com/mailgate/mailgate/verify"
)

const (
	racers = 64
	rounds = 100
)

// raceForOneCode lets 64 bring the right code at once: one of them had it.
func raceForOneCode(t *testing.T, open Open) {
	p, _ := begin(t, open)
	for round := range rounds {
		p.mailbox = newMailbox()
		p.add(1, minute)
		results := p.atOnce(func(q patron, _ int) verify.Result { return q.check(1) })
		if results[verify.Correct] != 1 || results[verify.Expired] != racers-1 {
			t.Fatalf("round %d: %v, want one correct, and expired for the others", round, results)
		}
	}
}

// raceForSeveralCodes lets 64 bring four codes that are all right: one of them had it.
func raceForSeveralCodes(t *testing.T, open Open) {
	const codes = 4
	p, _ := begin(t, open)
	for round := range rounds {
		p.mailbox = newMailbox()
		for n := range codes {
			p.add(n, minute)
		}
		results := p.atOnce(func(q patron, racer int) verify.Result { return q.check(racer % codes) })
		if results[verify.Correct] != 1 || results[verify.Expired] != racers-1 {
			t.Fatalf("round %d: %v, want one correct, and expired for the others", round, results)
		}
	}
}

// raceOfAdding lets codes be added at once, and none is lost.
func raceOfAdding(t *testing.T, open Open) {
	p, _ := begin(t, open)
	for round := range rounds {
		p.mailbox = newMailbox()
		p.atOnce(func(q patron, racer int) verify.Result {
			if racer < verify.MaxCodes {
				q.add(racer, minute)
				return verify.Expired
			}
			if result := q.check(1000); result == verify.Correct {
				t.Error("a code was right that nobody had added")
			}
			return verify.Expired
		})
		p.expect(round%verify.MaxCodes, verify.Correct)
	}
}

// atOnce lets all racers go at one moment, and counts their results.
func (p patron) atOnce(race func(q patron, racer int) verify.Result) map[verify.Result]int {
	var (
		done    sync.WaitGroup
		results [racers]verify.Result
		ready   = make(chan struct{})
	)
	for racer := range racers {
		done.Go(func() {
			<-ready
			results[racer] = race(p, racer)
		})
	}
	close(ready)
	done.Wait()
	counts := map[verify.Result]int{}
	for _, result := range results {
		counts[result]++
	}
	return counts
}
