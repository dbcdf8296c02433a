package rulefile

import (
	"strings"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// The algorithms, as they are written in files.
const (
	slidingLog    = "sliding-log"
	slidingWindow = "sliding-window"
	fixedWindow   = "fixed-window"
	tokenBucket   = "token-bucket"
	leakyBucket   = "leaky-bucket"
)

// The built-in rule client-ip, and how finely a sliding window counts by itself.
const (
	clientLimit  = 100
	clientWindow = time.Minute
	defaultParts = 60
)

// preset is what a rule need not say of itself.
type preset struct{ algorithm, limit string }

func presetOf(name string, d Defaults) preset {
	switch name {
	case rules.MailboxRule:
		return preset{slidingLog, d.Tiers.String()}
	case ClientIPRule:
		return preset{slidingWindow, throttle.Tier{Name: "minute", Limit: clientLimit, Window: clientWindow}.String()}
	}
	return preset{algorithm: slidingLog}
}

// build makes the algorithm of a rule or an action, with so many sends fewer than it says.
func (t countText) build(p preset, keep int) (a throttle.Algorithm, err error) {
	name, limit := p.algorithm, p.limit
	if t.Algorithm != nil {
		name = *t.Algorithm
	}
	if t.Limit != nil {
		limit = *t.Limit
	}
	if err := t.checkParameters(name); err != nil {
		return nil, err
	}
	switch {
	case limit == "":
		return nil, refuse("", "limit is missing; write it as name=limit/window, such as minute=10/60s")
	case strings.ContainsFunc(limit, notInLimit): // errors about limits repeat them
		return nil, refuse("limit", "write it as name=limit/window, such as minute=10/60s")
	case name == slidingLog && keep > 0:
		return nil, refuse("keep_for_first_sends", "a %s cannot keep sends; use another algorithm", slidingLog)
	case name == slidingLog:
		a, err = throttle.ParsePolicy(limit)
	case strings.Contains(limit, ","):
		return nil, refuse("limit", "a %s has one limit; several go with %s", name, slidingLog)
	default:
		a, err = t.buildCounter(name, limit, keep)
	}
	if err != nil {
		return nil, refuseOr("limit", err)
	}
	return a, nil
}

// refuseOr keeps the position of a mistake that has one.
func refuseOr(part string, err error) error {
	if _, placed := err.(wrong); placed {
		return err
	}
	return wrong{part, err}
}

func (t countText) buildCounter(name, limit string, keep int) (throttle.Algorithm, error) {
	tier, err := throttle.ParseTier(limit)
	if err != nil {
		return nil, err
	}
	room := tier.Limit // what keep is taken from
	if name == tokenBucket && t.Burst != nil {
		room = int(*t.Burst)
	}
	if name == leakyBucket {
		room = int(*t.Queue) + 1
	}
	if keep >= room && keep > 0 {
		return nil, refuse("keep_for_first_sends", "it must be less than %d", room)
	}
	switch name {
	case slidingWindow:
		parts := defaultParts
		if t.Parts != nil {
			parts = int(*t.Parts)
		}
		tier.Limit -= keep
		return throttle.NewSlidingWindow(tier, parts)
	case tokenBucket:
		return throttle.NewTokenBucket(tier, room-keep)
	case leakyBucket:
		return throttle.NewLeakyBucket(tier, room-1-keep)
	}
	tier.Limit -= keep
	return throttle.NewFixedWindow(tier)
}

// checkParameters refuses what goes with another algorithm.
func (t countText) checkParameters(algorithm string) error {
	switch algorithm {
	case slidingLog, slidingWindow, fixedWindow, tokenBucket, leakyBucket:
	default:
		return refuse("algorithm", "it must be one of %s", strings.Join([]string{slidingLog, slidingWindow, fixedWindow, tokenBucket, leakyBucket}, ", "))
	}
	for _, p := range []struct {
		name, of string
		given    *float64
		least    int
	}{
		{"parts", slidingWindow, t.Parts, 1},
		{"burst", tokenBucket, t.Burst, 1},
		{"queue", leakyBucket, t.Queue, 0},
	} {
		if p.given != nil && algorithm != p.of {
			return refuse(p.name, "only a %s has it, and this rule is a %s", p.of, algorithm)
		}
		if err := checkWhole(p.given, p.name, p.least); err != nil {
			return err
		}
	}
	if algorithm == leakyBucket && t.Queue == nil {
		return refuse("", "a %s needs queue: how many sends may wait", leakyBucket)
	}
	return nil
}

// notInLimit reports the characters that are in no limit, such as those of an address.
func notInLimit(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	return !letter && !strings.ContainsRune("0123456789=/,. -_+", c)
}

// checkDelay refuses a queue in which a send could wait until too little of its time is left
// for the relay: more than half of it.
func checkDelay(a throttle.Algorithm, deadline int64) error {
	queue, ok := a.(throttle.LeakyBucket)
	if !ok {
		return nil
	}
	tier, waiting := queue.Tier(), int64(queue.Room()-1)
	limit := int64(tier.Limit)
	if longest := (waiting*tier.Window.Milliseconds() + limit - 1) / limit; longest > deadline/2 {
		return refuse("queue", "the last of %d sends would wait %d ms; at most %d ms are allowed, half of the time that a send may take",
			waiting, longest, deadline/2)
	}
	return nil
}
