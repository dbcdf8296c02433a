package api

import (
	"strconv"

	"github.com/mailgate/mailgate/throttle"
)

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
	b = strconv.AppendInt(b, v.Wait, 10)
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
