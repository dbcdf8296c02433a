package throttletest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

const (
	racers = 64
	rounds = 1000
)

// raceForOneMailbox lets 64 callers take at once under a frozen clock, a thousand
// times: each time exactly the limit is admitted.
func raceForOneMailbox(t *testing.T, open Open) {
	clock := clocktest.New(start)
	limiter := open(t, Policy(t, "minute=3/60s,hour=5/1h"), clock.Now)
	for round := range Length(rounds) {
		mailbox := newMailbox("race")
		if admitted := Race(t, limiter, mailbox, racers); admitted != 3 {
			t.Fatalf("round %d: %d admitted, want 3", round, admitted)
		}
		h := patron{t: t, limiter: limiter, mailbox: mailbox}.history()
		if len(h) != 3 {
			t.Fatalf("round %d: history of %d, want 3", round, len(h))
		}
	}
}

// raceUnderAMovingClock lets the time go on by a millisecond whenever somebody looks.
// Whoever is denied, at whatever moment, is told the one moment that is right.
func raceUnderAMovingClock(t *testing.T, open Open) {
	var clock atomic.Int64
	clock.Store(start)
	limiter := open(t, Policy(t, "minute=3/60s"), func() int64 { return clock.Add(1) })
	for round := range Length(rounds / 10) {
		mailbox := newMailbox("moving")
		verdicts := takeAtOnce(t, limiter, mailbox, racers)
		h := patron{t: t, limiter: limiter, mailbox: mailbox}.history()
		if len(h) != 3 {
			t.Fatalf("round %d: history of %d, want 3", round, len(h))
		}
		for _, v := range verdicts {
			if want := h[0].At + 60_000; !v.Allowed && v.RetryAt() != want {
				t.Fatalf("round %d: denied at %d until %d, want %d", round, v.Now, v.RetryAt(), want)
			}
		}
	}
}

// Race lets a number of callers take for one mailbox at once and returns how many
// were admitted.
func Race(t testing.TB, limiter throttle.Limiter, mailbox string, callers int) int {
	admitted := 0
	for _, v := range takeAtOnce(t, limiter, mailbox, callers) {
		if v.Allowed {
			admitted++
		}
	}
	return admitted
}

func takeAtOnce(t testing.TB, limiter throttle.Limiter, mailbox string, callers int) []throttle.Verdict {
	verdicts := make([]throttle.Verdict, callers)
	var done sync.WaitGroup
	ready := make(chan struct{})
	for i := range verdicts {
		done.Go(func() {
			<-ready
			v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
			if err != nil {
				t.Errorf("take: %v", err)
			}
			verdicts[i] = v
		})
	}
	close(ready)
	done.Wait()
	return verdicts
}
