package api

import (
	"strconv"

	"github.com/mailgate/mailgate/throttle"
)

// waitOf is how many milliseconds from the answer's server_time the next send is
// admitted. Where the clock has stepped back that is more than the verdict's own wait,
// which counts from the newest send.
func waitOf(v *throttle.Verdict) int64 { return v.RetryAt() - v.Now }

// appendStandings adds how every tier stands, with waits that count as waitOf does.
func appendStandings(to []throttle.Standing, v *throttle.Verdict) []throttle.Standing {
	to = v.AppendTiers(to)
	if behind := waitOf(v) - v.Wait; behind > 0 {
		for i := range to {
			if to[i].Wait > 0 {
				to[i].Wait += behind
			}
		}
	}
	return to
}

// appendVerdict adds what every answer says about a mailbox: limit, wait_ms, retry_at,
// server_time, limits and degraded, without braces.
func appendVerdict(b []byte, v *throttle.Verdict, tiers []throttle.Standing) []byte {
	b = append(b, `"limit":`...)
	if v.Limit == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, v.Limit)
	}
	b = append(b, `,"wait_ms":`...)
	b = strconv.AppendInt(b, waitOf(v), 10)
	b = append(b, `,"retry_at":`...)
	b = appendTime(b, v.RetryAt())
	b = append(b, `,"server_time":`...)
	b = appendTime(b, v.Now)
	b = append(b, `,"limits":[`...)
	for i, tier := range tiers {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTier(b, tier)
	}
	return append(b, `],"degraded":false`...)
}

func appendTier(b []byte, tier throttle.Standing) []byte {
	b = append(b, `{"name":"`...) // a tier's name needs no escapes
	b = append(b, tier.Name...)
	b = append(b, `","limit":`...)
	b = strconv.AppendInt(b, int64(tier.Limit), 10)
	b = append(b, `,"window_ms":`...)
	b = strconv.AppendInt(b, tier.Window, 10)
	b = append(b, `,"remaining":`...)
	b = strconv.AppendInt(b, int64(tier.Remaining), 10)
	b = append(b, `,"wait_ms":`...)
	b = strconv.AppendInt(b, tier.Wait, 10)
	return append(b, '}')
}

// appendViolated adds the names of all full tiers, as a JSON array.
func appendViolated(b []byte, tiers []throttle.Standing) []byte {
	b = append(b, '[')
	start := len(b)
	for _, tier := range tiers {
		if tier.Remaining > 0 {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = appendString(b, tier.Name)
	}
	return append(b, ']')
}

// appendRateLimit adds the RateLimit header's value: "minute";r=0;t=60, and so on.
func appendRateLimit(b []byte, tiers []throttle.Standing) []byte {
	for i, tier := range tiers {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '"')
		b = append(b, tier.Name...)
		b = append(b, `";r=`...)
		b = strconv.AppendInt(b, int64(tier.Remaining), 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, seconds(tier.Wait), 10)
	}
	return b
}

// rateLimitPolicy is the RateLimit-Policy header's value: "minute";q=1;w=60, and so on.
func rateLimitPolicy(p throttle.Policy) string {
	var b []byte
	for i, tier := range p.Tiers() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '"')
		b = append(b, tier.Name...)
		b = append(b, `";q=`...)
		b = strconv.AppendInt(b, int64(tier.Limit), 10)
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, seconds(tier.Window), 10)
	}
	return string(b)
}
