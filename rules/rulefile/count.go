package rulefile

import (
	"fmt"
	"strings"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// The algorithms, as they are written in files.
const (
	slidingLog    = "sliding-log"
	slidingWindow = "sliding-window"
	fixedWindow   = "fixed-window"
	tokenBucket   = "token-bucket"
	leakyBucket   = "leaky-bucket"
)

// readCount reads the algorithm and its numbers. What is left out is as in the preset; a
// limit that is empty then is missing.
func readCount(p parts, set preset) (c Count, err error) {
	algorithm, err := p.text("algorithm", set.algorithm)
	if err != nil {
		return c, err
	}
	n, err := p.readNumbers(algorithm)
	if err != nil {
		return c, err
	}
	limit, err := p.text("limit", set.limit)
	if err != nil {
		return c, err
	}
	if limit == "" {
		return c, p.whole.Refuse("it has no limit, such as minute=10/60s")
	}
	if strings.ContainsFunc(limit, notInLimit) {
		return c, p.at("limit").Refuse("it must be written as name=limit/window, such as minute=10/60s")
	}
	if c, err = newCount(algorithm, limit, n); err != nil {
		problem := err.Error()
		if algorithm == slidingLog && !set.fixed && exceedsLog(limit) {
			problem += "; " + slidingWindow + " and " + fixedWindow + " take more"
		}
		return Count{}, p.at("limit").Refuse(problem)
	}
	return c, nil
}

// notInLimit are the characters that are in no limit. Errors about limits repeat them,
// and nothing with these in it, such as an address.
func notInLimit(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	return !letter && !strings.ContainsRune("0123456789=/,. -_+", c)
}

// exceedsLog reports whether one of the limits is more than a sliding-log takes.
func exceedsLog(limits string) bool {
	for one := range strings.SplitSeq(limits, ",") {
		if tier, err := throttle.ParseTier(strings.TrimSpace(one)); err == nil && tier.Limit > throttle.MaxLimit {
			return true
		}
	}
	return false
}

func newCount(algorithm, limit string, n numbers) (c Count, err error) {
	if algorithm == slidingLog {
		c.Tiers, err = throttle.ParsePolicy(limit)
	} else {
		c.Meter, err = newMeter(algorithm, limit, n)
	}
	return c, err
}

// numbers are what single algorithms need besides the limit.
type numbers struct{ parts, burst, queue int }

// readNumbers reads those of the algorithm, and refuses those of the others.
func (p parts) readNumbers(algorithm string) (n numbers, err error) {
	switch algorithm {
	case slidingLog, slidingWindow, fixedWindow, tokenBucket, leakyBucket:
	default:
		return n, p.at("algorithm").Refuse("it must be one of " +
			strings.Join([]string{slidingLog, slidingWindow, fixedWindow, tokenBucket, leakyBucket}, ", "))
	}
	for _, one := range []struct {
		name, of string
		least    int
		into     *int
	}{
		{"parts", slidingWindow, 1, &n.parts},
		{"burst", tokenBucket, 1, &n.burst},
		{"queue", leakyBucket, 0, &n.queue},
	} {
		if _, given := p.byName[one.name]; given && algorithm != one.of {
			return n, p.at(one.name).Refuse(fmt.Sprintf("it goes with %s, and this is a %s", one.of, algorithm))
		}
		if *one.into, err = p.number(one.name, one.least); err != nil {
			return n, err
		}
	}
	if _, given := p.byName["queue"]; algorithm == leakyBucket && !given {
		return n, p.whole.Refuse("a " + leakyBucket + " needs queue: how many may wait for their turn")
	}
	return n, nil
}

func newMeter(algorithm, limit string, n numbers) (meter.Meter, error) {
	if strings.Contains(limit, ",") {
		return nil, fmt.Errorf("a %s has one limit; several go with %s", algorithm, slidingLog)
	}
	tier, err := throttle.ParseTier(limit)
	if err != nil {
		return nil, err
	}
	switch algorithm {
	case slidingWindow:
		return meter.NewSlidingWindow(tier, n.parts)
	case tokenBucket:
		return meter.NewTokenBucket(tier, n.burst)
	case leakyBucket:
		return meter.NewLeakyBucket(tier, n.queue)
	default:
		return meter.NewFixedWindow(tier)
	}
}
