package throttletest

import (
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// raceForOneKey lets 64 callers take at once under a frozen clock, many times: each
// time exactly the limit is admitted, and where they queue all have turns of their own.
func raceForOneKey(t *testing.T, open OpenMeter, algorithm string) {
	n := usualNumbers(algorithm)
	limiter := open(t, n.meter(t), clocktest.New(start).Now)
	for round := range Length(rounds) {
		key := newMailbox("race")
		turns := map[int64]bool{}
		admitted := 0
		for _, v := range takeAtOnce(t, limiter, key, racers) {
			if v.Allowed {
				admitted++
				turns[v.Delay] = true
			}
		}
		if admitted != n.room() {
			t.Fatalf("round %d: %d admitted, want %d", round, admitted, n.room())
		}
		if algorithm == leakyBucket && len(turns) != admitted {
			t.Fatalf("round %d: %d admitted with only %d turns", round, admitted, len(turns))
		}
	}
}

// reservingViews count together: one leaves the last two to the other.
func reservingViews(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	m := w.meter(t)
	reserving, err := m.Reserving(2)
	if err != nil {
		t.Fatal(err)
	}
	if m.Form() != reserving.Form() {
		t.Fatalf("forms %s and %s", m.Form(), reserving.Form())
	}
	careful := patron{t: t, limiter: open(t, reserving, w.clock.Now), mailbox: w.mailbox}
	w.admit()
	shared := careful.admit()
	w.naive.take(w.clock.Now(), shared) // its model knows what the other view was told
	if v := careful.peek(); !v.Allowed || v.Tiers()[0].Remaining != 1 {
		t.Fatalf("two of five are taken, two kept back: %v; do the two limiters share one store?", answerOf(v))
	}
	w.admit()
	for _, v := range []throttle.Verdict{careful.take(throttle.NewID()), careful.peek()} {
		if v.Allowed || v.Wait == 0 || v.Tiers()[0].Remaining != 0 {
			t.Fatalf("three of five are taken, two kept back: %v", answerOf(v))
		}
	}
	if !careful.take(shared).Allowed {
		t.Fatal("what the careful one admitted is denied when it is taken again")
	}
	w.admit()
	last := w.admit()
	w.deny()
	if !careful.release(last) {
		t.Fatal("the careful one did not give back what the other admitted")
	}
	w.naive.release(w.clock.Now(), last)
	w.admit()
	// At the moment it was told the careful one admits, and not before.
	until := careful.peek().RetryAt()
	w.clock.Set(until - 1)
	if careful.peek().Allowed {
		t.Fatal("allowed one millisecond before the moment that was told")
	}
	w.clock.Set(until)
	careful.admit()
}

// aMillion counts to some of a million. A state does not remember them all: the oldest
// can then neither be repeated nor given back, and count all the same.
func aMillion(t *testing.T, open OpenMeter, algorithm string) {
	forgotten := Length(500)
	n := usualNumbers(algorithm)
	n.tier.Limit = 1_000_000
	switch algorithm {
	case tokenBucket:
		n.extra = n.tier.Limit
	case leakyBucket:
		n.extra = n.tier.Limit - 1
	}
	w := newTwin(t, open, clocktest.New(start+20_500), n)
	var ids []throttle.ID
	for range meter.MaxHeld + forgotten {
		ids = append(ids, w.admit())
	}
	if w.release(ids[0]) || w.release(ids[forgotten-1]) {
		t.Fatal("gave back what a state cannot remember")
	}
	if !w.release(ids[forgotten]) || !w.release(ids[len(ids)-1]) {
		t.Fatal("did not give back what a state remembers")
	}
	w.take(ids[forgotten+1])
	left := w.peek().Tiers()[0].Remaining
	if w.take(ids[0]); w.peek().Tiers()[0].Remaining != left-1 {
		t.Fatal("an id that is forgotten is not charged anew")
	}
	w.clock.Add(10) // ten milliseconds later a bucket has lost some, and a window none
	for range 10 {
		w.admit()
	}
	w.release(ids[forgotten+2])
	w.reset()
}
