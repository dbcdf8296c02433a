package throttle

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParsePolicy reads the text form of a policy: tiers written name=limit/window and
// separated by commas, in any order, with or without spaces after the commas. A
// window is whole milliseconds, written as Go durations are: 400ms, 60s, 1h30m. The
// rules and the errors are those of [NewPolicy].
func ParsePolicy(text string) (Policy, error) {
	if strings.TrimSpace(text) == "" {
		return NewPolicy()
	}
	var tiers []Tier
	for part := range strings.SplitSeq(text, ",") {
		tier, err := ParseTier(strings.TrimSpace(part))
		if err != nil {
			return Policy{}, err
		}
		tiers = append(tiers, tier)
	}
	return NewPolicy(tiers...)
}

// ParseTier reads one tier, written name=limit/window. It checks the form and the
// name, not the size of the numbers.
func ParseTier(text string) (Tier, error) {
	name, rest, named := strings.Cut(text, "=")
	limit, window, windowed := strings.Cut(rest, "/")
	if !named || !windowed {
		return Tier{}, fmt.Errorf("tier %s: write it as name=limit/window, such as minute=1/60s", quote(text))
	}
	if err := checkTierName(name); err != nil {
		return Tier{}, err
	}
	count, err := strconv.Atoi(limit)
	if err != nil {
		return Tier{}, fmt.Errorf("tier %s: the limit %s is not a whole number, or too large", name, quote(limit))
	}
	length, err := time.ParseDuration(window)
	if err != nil {
		return Tier{}, fmt.Errorf("tier %s: the window %s is not a length of time such as 400ms, 60s or 24h", name, quote(window))
	}
	return Tier{Name: name, Limit: count, Window: length}, nil
}

// quote keeps foreign text short and printable inside a sentence.
func quote(text string) string {
	const most = 40
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}

// String returns the text form that ParsePolicy reads: equal policies have equal texts.
func (p Policy) String() string {
	all := make([]string, len(p.tiers))
	for i, tier := range p.tiers {
		all[i] = tier.String()
	}
	return strings.Join(all, ",")
}

// String returns the tier as name=limit/window.
func (t Tier) String() string {
	return t.Name + "=" + strconv.Itoa(t.Limit) + "/" + formatWindow(t.Window)
}

// formatWindow writes 60s rather than 1m, and 24h rather than 86400s.
func formatWindow(window time.Duration) string {
	ms := window.Milliseconds()
	const second, minute, hour = 1000, 60_000, 3_600_000
	switch {
	case ms != 0 && ms%hour == 0:
		return strconv.FormatInt(ms/hour, 10) + "h"
	case ms%minute == 0 && ms > minute:
		return strconv.FormatInt(ms/minute, 10) + "m"
	case ms%second == 0:
		return strconv.FormatInt(ms/second, 10) + "s"
	}
	return strconv.FormatInt(ms, 10) + "ms"
}
