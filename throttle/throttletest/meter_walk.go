package throttletest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// A stroller leads a twin through a random life.
type stroller struct {
	*twin
	random *rand.Rand
	ids    []throttle.ID
	counts int // how many of three sends are counted without an id, if the limiter can do that
}

// strollWithMeter asks that many questions of limiters that count by one algorithm. Each
// denial is tried again one millisecond before its wait is over, and when it is over. A
// failure names the seed.
func strollWithMeter(t *testing.T, open OpenMeter, algorithm string, seed uint64, steps int) {
	steps = Length(steps)
	random := rand.New(rand.NewPCG(seed, 0))
	clock := clocktest.New(start)
	for walked := 0; walked < steps; {
		clock.Set(start + random.Int64N(100_000_000))
		w := &stroller{twin: newTwin(t, open, clock, randomNumbers(algorithm, random)), random: random}
		if _, counts := w.limiter.(counter); counts {
			w.counts = random.IntN(4)
		}
		w.about = fmt.Sprintf("seed %d, %s", seed, w.about)
		walked += w.stroll(min(1000, steps-walked))
	}
}

func (w *stroller) stroll(steps int) int {
	for len(w.story) < steps {
		w.moveClock()
		if _, records := w.recorder(); records && w.random.IntN(8) == 0 {
			w.stepRecord()
			continue
		}
		switch dice := w.random.IntN(20); {
		case dice < 12 && w.random.IntN(3) < w.counts:
			w.stepCount()
		case dice < 12:
			w.stepTake()
		case dice < 14:
			w.again(3, func(id throttle.ID) {
				w.forgetOpen()
				w.take(id)
			})
		case dice < 16:
			w.peek()
		case dice < 19:
			w.again(4, func(id throttle.ID) { w.release(id) })
		case w.random.IntN(3) == 0:
			w.reset()
		default:
			w.release(throttle.NewID())
		}
	}
	return len(w.story)
}

// again does something with one of the last ids, most of which were admitted.
func (w *stroller) again(last int, do func(throttle.ID)) {
	if len(w.ids) > 0 {
		do(w.ids[len(w.ids)-1-w.random.IntN(min(last, len(w.ids)))])
	}
}

// moveClock goes on by nothing, by a little, to about an edge, far, or back.
func (w *stroller) moveClock() {
	window, now := w.tier.Window, w.clock.Now()
	switch dice := w.random.IntN(24); {
	case dice < 7:
	case dice < 13:
		w.clock.Add(w.random.Int64N(2 + window/int64(w.tier.Limit)))
	case dice < 16: // an edge between two windows, or parts
		part := upward(window, int64(1+w.extra))
		w.clock.Add(part - now%part - 1 + w.random.Int64N(3))
	case dice < 19: // a window after something
		w.clock.Add(window - 1 + w.random.Int64N(3))
	case dice < 20:
		w.clock.Add(w.random.Int64N(3 * window))
	case dice < 22 && len(w.naive.sends) > 0:
		newest := w.naive.sends[len(w.naive.sends)-1].at
		w.clock.Set(newest - w.random.Int64N(1+[]int64{3, window, 5 * window}[w.random.IntN(3)]))
	}
}

func (w *stroller) stepCount() {
	by := w.limiter.(counter)
	v := w.count(by)
	if v.Allowed {
		return
	}
	w.clock.Set(v.RetryAt() - 1)
	if w.count(by).Allowed {
		w.fail("counted before its wait was over")
	}
	w.clock.Set(v.RetryAt())
	if !w.count(by).Allowed {
		w.fail("not counted when its wait was over")
	}
}

func (w *stroller) stepTake() {
	id := throttle.NewID()
	w.ids = append(w.ids, id) // also one that is denied may be asked for again
	w.forgetOpen()
	v := w.take(id)
	if v.Allowed {
		return
	}
	w.clock.Set(v.RetryAt() - 1)
	w.deny()
	w.clock.Set(v.RetryAt())
	w.forgetOpen()
	w.ids = append(w.ids, w.admit())
}

// forgetOpen resets a key that counts nothing, where some were recorded late: a store may have
// kept it for more of that time to come, or not.
func (w *stroller) forgetOpen() {
	if w.naive.open && w.naive.way.used(w.naive.counting(w.clock.Now()), w.naive.clock(w.clock.Now())) == 0 {
		w.reset()
	}
}
