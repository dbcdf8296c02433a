package throttletest

import (
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// algorithms are all ways to count that there are.
var algorithms = [...]string{fixedWindow, slidingWindow, tokenBucket, leakyBucket}

const (
	fixedWindow   = "fixed window"
	slidingWindow = "sliding window"
	tokenBucket   = "token bucket"
	leakyBucket   = "leaky bucket"
)

// numbers are what a meter is made of, and its model too.
type numbers struct {
	algorithm string
	tier      throttle.Tier
	extra     int // parts, burst or queue
}

// usualNumbers admit five at once, and no more for some time.
func usualNumbers(algorithm string) numbers {
	n := numbers{algorithm: algorithm, tier: throttle.Tier{Name: "minute", Limit: 5, Window: 60_000}}
	switch algorithm {
	case slidingWindow:
		n.extra = 60
	case tokenBucket:
		n.tier.Limit, n.extra = 7, 5
	case leakyBucket:
		n.tier.Limit, n.extra = 7, 4
	}
	return n
}

// randomNumbers are small, so that limits are met often.
func randomNumbers(algorithm string, random *rand.Rand) numbers {
	windows := []int64{1 + random.Int64N(20), 1 + random.Int64N(5000), 60_000, 3_600_000, 86_400_000}
	n := numbers{algorithm: algorithm, tier: throttle.Tier{
		Name:   "some",
		Limit:  1 + random.IntN(1+random.IntN(12)),
		Window: windows[random.IntN(len(windows))],
	}}
	switch algorithm {
	case slidingWindow:
		n.extra = []int{1, 2, 7, 60, 1000}[random.IntN(5)]
	case tokenBucket:
		n.extra = 1 + random.IntN(2*n.tier.Limit)
	case leakyBucket:
		n.extra = random.IntN(2 * n.tier.Limit)
	}
	return n
}

func (n numbers) meter(t testing.TB) meter.Meter {
	t.Helper()
	var m meter.Meter
	var err error
	switch n.algorithm {
	case fixedWindow:
		m, err = meter.NewFixedWindow(n.tier)
	case slidingWindow:
		m, err = meter.NewSlidingWindow(n.tier, n.extra)
	case tokenBucket:
		m, err = meter.NewTokenBucket(n.tier, n.extra)
	case leakyBucket:
		m, err = meter.NewLeakyBucket(n.tier, n.extra)
	}
	if err != nil {
		t.Fatalf("making a %s: %v", n.algorithm, err)
	}
	return m
}

// room is how many sends are admitted at once.
func (n numbers) room() int {
	switch n.algorithm {
	case tokenBucket:
		return n.extra
	case leakyBucket:
		return n.extra + 1
	}
	return n.tier.Limit
}

func (n numbers) model() naive {
	model := naive{most: min(n.room(), 1024)}
	switch n.algorithm {
	case fixedWindow:
		model.way = inFixedWindows{tier: n.tier}
	case slidingWindow:
		model.way = inParts{tier: n.tier, parts: int64(n.extra)}
	default:
		model.way = inBucket{tier: n.tier, room: int64(n.room()), queue: n.algorithm == leakyBucket}
	}
	return model
}
