package throttle

import (
	"fmt"
	"strings"
)

// Parse reads the text that an algorithm's String returns. The algorithm that it makes takes the same steps.
func Parse(text string) (Algorithm, error) {
	kind, rest, counts := strings.Cut(text, " ")
	if !counts {
		return ParsePolicy(text)
	}
	limit, parameters, _ := strings.Cut(rest, " ")
	tier, err := ParseTier(strings.TrimSuffix(limit, ","))
	if err != nil {
		return nil, err
	}
	var n int
	read := func(form string) error { _, err := fmt.Sscanf(parameters, form, &n); return err }
	switch kind {
	case "fixed-window":
		return NewFixedWindow(tier)
	case "sliding-window":
		if err = read("in parts of %d ms"); err == nil && n > 0 {
			return NewSlidingWindow(tier, int(ceilDiv(tier.ms(), int64(n))))
		}
	case "token-bucket":
		if err = read("bursts of %d"); err == nil {
			return NewTokenBucket(tier, n)
		}
	case "leaky-bucket":
		if err = read("a queue of %d"); err == nil {
			return NewLeakyBucket(tier, n)
		}
	}
	return nil, fmt.Errorf("%s is no algorithm", quote(text))
}
