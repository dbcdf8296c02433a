package throttle

import (
	"errors"
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
	if count := strings.Count(text, ",") + 1; count > maxTiers {
		return Policy{}, tooMany(count)
	}
	tiers := make([]Tier, 0, maxTiers)
	for part := range strings.SplitSeq(text, ",") {
		tier, err := ParseTier(strings.TrimSpace(part))
		if err != nil {
			return Policy{}, err
		}
		tiers = append(tiers, tier)
	}
	return NewPolicy(tiers...)
}

// ParseTier reads one tier, written name=limit/window. It checks how it is written and
// its name; how large its numbers may be is for those who use it.
func ParseTier(text string) (Tier, error) {
	name, rest, named := strings.Cut(text, "=")
	limit, window, windowed := strings.Cut(rest, "/")
	if !named || !windowed {
		return Tier{}, fmt.Errorf("tier %s: write it as name=limit/window, such as minute=1/60s", quote(text))
	}
	if err := checkTierName(name); err != nil {
		return Tier{}, err
	}
	count, err := parseLimit(limit)
	if err != nil {
		return Tier{}, fmt.Errorf("tier %s: %w", name, err)
	}
	length, err := parseWindow(window)
	if err != nil {
		return Tier{}, fmt.Errorf("tier %s: %w", name, err)
	}
	return Tier{Name: name, Limit: count, Window: length}, nil
}

func parseLimit(text string) (int, error) {
	limit, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("the limit %s is too large", quote(text))
	}
	if err != nil {
		return 0, fmt.Errorf("the limit %s is not a whole number", quote(text))
	}
	return limit, nil
}

func parseWindow(text string) (time.Duration, error) {
	length, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("the window %s is not a length of time such as 400ms, 60s or 24h", quote(text))
	}
	if length%time.Millisecond != 0 {
		return 0, fmt.Errorf("the window %s is not a whole number of milliseconds", quote(text))
	}
	return length, nil
}

// quote keeps foreign text short and printable inside a sentence.
func quote(text string) string {
	const most = 40
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}

// String is the text form that ParsePolicy reads: equal policies have equal texts.
// Of the zero Policy it is empty.
func (p Policy) String() string {
	var b strings.Builder
	for i, tier := range p.tiers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(tier.String())
	}
	return b.String()
}

// String is the tier as name=limit/window.
func (t Tier) String() string {
	return t.Name + "=" + strconv.Itoa(t.Limit) + "/" + formatWindow(t.Window)
}

// formatWindow writes a window the way people do: 60s rather than 1m, 24h rather
// than 86400s.
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
