package throttletest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

const (
	racers = 64
	rounds = 1000
)

// raceForOneMailbox lets 64 callers take at once under a frozen clock, a thousand
// times: each time exactly the limit is admitted.
func raceForOneMailbox(t *testing.T, open Open) {
	clock := NewClock(start)
	limiter := open(t, policy(t, "minute=3/60s,hour=5/1h"), clock.Now)
	for round := range rounds {
		mailbox := newMailbox("race")
		if admitted := Race(t, limiter, mailbox, racers); admitted != 3 {
			t.Fatalf("round %d: %d admitted, want 3", round, admitted)
		}
		h, err := limiter.History(context.Background(), mailbox)
		if err != nil || len(h) != 3 {
			t.Fatalf("round %d: history of %d, %v; want 3", round, len(h), err)
		}
	}
}

// Race lets a number of callers take for one mailbox at once and returns how many
// were admitted.
func Race(t testing.TB, limiter throttle.Limiter, mailbox string, callers int) int {
	var admitted atomic.Int64
	var done sync.WaitGroup
	ready := make(chan struct{})
	for range callers {
		done.Go(func() {
			<-ready
			v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
			if err != nil {
				t.Errorf("take: %v", err)
			}
			if v.Allowed {
				admitted.Add(1)
			}
		})
	}
	close(ready)
	done.Wait()
	return int(admitted.Load())
}
