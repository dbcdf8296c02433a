package meter_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// seed is of the crowds in all tests here.
const seed = 3

// admitted is when a meter lets sends through that come in crowds and at the edges of
// windows. asked hears of every answer.
func admitted(m meter.Meter, asks int, asked func(now int64, log []int64, v meter.Reading)) (log []int64) {
	random := rand.New(rand.NewPCG(seed, 0))
	window, limit := m.Tier().Window, int64(m.Tier().Limit)
	var s meter.State
	now := start
	for range asks {
		switch random.IntN(12) {
		case 0: // to about the edge of a window
			now += window - now%window - 2 + random.Int64N(4)
		case 1:
			now += random.Int64N(2 * window)
		case 2, 3, 4:
			now += random.Int64N(1 + 2*window/limit)
		}
		v, _ := m.Take(&s, throttle.NewID(), now)
		asked(now, log, v)
		if v.Allowed {
			log = append(log, now)
		}
	}
	return log
}

// most is the largest number of sends inside any minute, counted by the exact log.
func most(log []int64) (n int) {
	first := 0
	for i, at := range log {
		for at-log[first] >= minute {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// until is the moment from which the next send is admitted.
func until(r meter.Reading) int64 { return r.Clock + r.Wait }

// A sliding window never lets more through than its limit, in any window. The price is
// what a send weighs too long: less than one part.
func TestSlidingWindowBound(t *testing.T) {
	asks := 60_000
	if testing.Short() {
		asks = 20_000
	}
	for _, parts := range []int{1, 2, 7, 60, 600, 1000} {
		m := must(meter.NewSlidingWindow(tier(9, minute), parts))
		part := m.(meter.SlidingWindow).Part()
		longest := int64(0) // that a send was refused for after the exact log would let it through
		log := admitted(m, asks, func(now int64, log []int64, v meter.Reading) {
			if v.Allowed {
				return
			}
			exact := log[len(log)-m.Tier().Limit] + minute // when the exact rule would admit
			longest = max(longest, until(v)-exact)
			if until(v) < exact {
				t.Fatalf("seed %d, %s: at %d it promises %d, the exact log only %d", seed, m, now, until(v), exact)
			}
		})
		if n := most(log); n != m.Tier().Limit {
			t.Errorf("seed %d, %s: %d in one window, want its limit and never more", seed, m, n)
		}
		t.Logf("%s: a send weighed at most %d ms too long, a part has %d", m, longest, part)
		if longest >= part || longest < part*9/10 {
			t.Errorf("seed %d, %s: a send weighed %d ms too long, want less than a part of %d, and nearly so", seed, m, longest, part)
		}
	}
}

// A fixed window lets up to twice its limit through across an edge, never more.
func TestFixedWindowBound(t *testing.T) {
	m := must(meter.NewFixedWindow(tier(9, minute)))
	log := admitted(m, 60_000, func(int64, []int64, meter.Reading) {})
	if n := most(log); n != 2*m.Tier().Limit {
		t.Errorf("seed %d: %d in one window, want twice the limit of %d", seed, n, m.Tier().Limit)
	}
	perWindow := map[int64]int{}
	for _, at := range log {
		if perWindow[at/minute]++; perWindow[at/minute] > m.Tier().Limit {
			t.Fatalf("seed %d: more than the limit in the window of %d", seed, at)
		}
	}
}

// Buckets let through what they have room for and what drains before the window is over:
// less than the limit. The worst case is one that is full and never left alone.
func TestBucketBound(t *testing.T) {
	const limit, room = 9, 4
	for _, m := range buckets(limit, room, minute) {
		var s meter.State
		greedy := []int64{}
		for now := start; now < start+2*minute; now = until(m.Look(&s, now)) {
			takes(t, m, &s, 1, now)
			greedy = append(greedy, now)
		}
		if n := most(greedy); n != room+limit-1 {
			t.Errorf("%s: %d in one window from the greediest, want %d", m, n, room+limit-1)
		}
		log := admitted(m, 60_000, func(int64, []int64, meter.Reading) {})
		if n := most(log); n <= limit || n > room+limit-1 {
			t.Errorf("seed %d, %s: %d in one window, want more than %d and at most %d", seed, m, n, limit, room+limit-1)
		}
	}
}

// However they came, from a queue no more leave in a window than the limit, one by one.
func TestLeakyBucketPace(t *testing.T) {
	const limit = 9
	m := must(meter.NewLeakyBucket(tier(limit, minute), 3))
	var turns []int64
	clock := int64(0)
	admitted(m, 60_000, func(now int64, _ []int64, v meter.Reading) {
		if clock = max(clock, now); v.Allowed {
			turns = append(turns, clock+v.Delay)
		}
	})
	for i := 1; i < len(turns); i++ {
		if turns[i]-turns[i-1] < minute/limit {
			t.Fatalf("seed %d: turns at %d and %d", seed, turns[i-1], turns[i])
		}
	}
	if n := most(turns); n != limit {
		t.Errorf("seed %d: %d left in one window, want %d", seed, n, limit)
	}
}
