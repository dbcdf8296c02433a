package rulefile

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/throttle"
)

// The algorithms, as they are written in files.
const (
	slidingLog    = "sliding-log"
	slidingWindow = "sliding-window"
	fixedWindow   = "fixed-window"
	tokenBucket   = "token-bucket"
	leakyBucket   = "leaky-bucket"
)

// inLimits are the characters that limits are written with.
const inLimits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=/,. -_+"

// count is how a rule or an action counts, as it is written.
type count struct {
	Algorithm string `yaml:"algorithm"`
	Limit     string `yaml:"limit"`
	Parts     *whole `yaml:"parts"`
	Burst     *whole `yaml:"burst"`
	Queue     *whole `yaml:"queue"`
}

// whole is a number that is decoded here, as the library would cut 5.5 to 5 without an error.
type whole int

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (w *whole) UnmarshalYAML(node ast.Node) error {
	const most = 1 << 31
	if n, ok := node.(*ast.IntegerNode); ok {
		if value, ok := n.Value.(uint64); ok && value < most {
			*w = whole(value)
			return nil
		}
	}
	return yamlfile.Wrong(node, "it must be a whole number, 0 or more")
}

// or returns the number, or another where it is not given.
func (w *whole) or(other int) int {
	if w == nil {
		return other
	}
	return int(*w)
}

// build makes the algorithm, with so many sends fewer than are written.
func (c count) build(keep int) (throttle.Algorithm, error) {
	if err := c.checkParameters(); err != nil {
		return nil, err
	}
	switch {
	case c.Limit == "":
		return nil, refuse("", "limit is missing; write it as name=limit/window, such as minute=10/60s")
	case strings.Trim(c.Limit, inLimits) != "": // it may be an address, and errors about limits repeat them
		return nil, refuse("limit", "write it as name=limit/window, such as minute=10/60s")
	case c.Algorithm == slidingLog && keep > 0:
		return nil, refuse("keep_for_first_sends", "a %s cannot keep sends; use another algorithm", slidingLog)
	case c.Algorithm == slidingLog:
		policy, err := throttle.ParsePolicy(c.Limit)
		return policy, wrongIn("limit", err)
	case strings.Contains(c.Limit, ","):
		return nil, refuse("limit", "a %s has one limit; several go with %s", c.Algorithm, slidingLog)
	}
	tier, err := throttle.ParseTier(c.Limit)
	if err != nil {
		return nil, wrongIn("limit", err)
	}
	room := tier.Limit // what keep is taken from
	switch c.Algorithm {
	case tokenBucket:
		room = c.Burst.or(room)
	case leakyBucket:
		room = c.Queue.or(0) + 1
	}
	if keep > 0 && keep >= room {
		return nil, refuse("keep_for_first_sends", "it must be less than %d", room)
	}
	var a throttle.Algorithm
	switch c.Algorithm {
	case tokenBucket:
		a, err = throttle.NewTokenBucket(tier, room-keep)
	case leakyBucket:
		a, err = throttle.NewLeakyBucket(tier, room-keep-1)
	case fixedWindow:
		tier.Limit -= keep
		a, err = throttle.NewFixedWindow(tier)
	default:
		tier.Limit -= keep
		a, err = throttle.NewSlidingWindow(tier, c.Parts.or(0))
	}
	return a, wrongIn("limit", err)
}

// checkParameters refuses what goes with another algorithm.
func (c count) checkParameters() error {
	if all := []string{slidingLog, slidingWindow, fixedWindow, tokenBucket, leakyBucket}; !slices.Contains(all, c.Algorithm) {
		return refuse("algorithm", "it must be one of %s", strings.Join(all, ", "))
	}
	for _, p := range []struct {
		name, of string
		given    *whole
		least    int
	}{
		{"parts", slidingWindow, c.Parts, 1},
		{"burst", tokenBucket, c.Burst, 1},
		{"queue", leakyBucket, c.Queue, 0},
	} {
		switch {
		case p.given != nil && c.Algorithm != p.of:
			return refuse(p.name, "it is for %s, not for %s", p.of, c.Algorithm)
		case p.given.or(p.least) < p.least:
			return refuse(p.name, "it must be at least %d", p.least)
		}
	}
	if c.Algorithm == leakyBucket && c.Queue == nil {
		return refuse("", "a %s needs queue: how many sends may wait", leakyBucket)
	}
	return nil
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
