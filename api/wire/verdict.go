package wire

import (
	"strconv"

	"github.com/mailgate/mailgate/throttle"
)

// Wait is how many milliseconds from the answer's server_time the next one is admitted.
// Where the clock has stepped back that is more than the verdict's own wait, which counts
// from the newest admission.
func Wait(v *throttle.Verdict) int64 { return v.RetryAt - v.Now }

// Limit is the state of one tier, as answers list it.
type Limit struct {
	throttle.TierState
	Partition string // what the tier counts by, as a keyed hash; empty if there is but one
}

// AppendLimits adds the limits of a verdict about a partition, with waits that count as [Wait]
// does.
func AppendLimits(to []Limit, v *throttle.Verdict, partition string) []Limit {
	behind := Wait(v) - v.Wait
	for _, tier := range v.Tiers {
		if tier.Wait > 0 {
			tier.Wait += behind
		}
		if tier.Refill > 0 {
			tier.Refill += behind
		}
		to = append(to, Limit{tier, partition})
	}
	return to
}

// AppendVerdict adds what every answer says about waiting: limit, wait_ms, retry_at and
// server_time of the verdict, then limits as they are given, and degraded. It adds no
// braces.
func AppendVerdict(b []byte, v *throttle.Verdict, limits []Limit) []byte {
	b = append(b, `"limit":`...)
	b = AppendName(b, v.Limit)
	b = append(b, `,"wait_ms":`...)
	b = strconv.AppendInt(b, Wait(v), 10)
	b = append(b, `,"retry_at":`...)
	b = AppendTime(b, v.RetryAt)
	b = append(b, `,"server_time":`...)
	b = AppendTime(b, v.Now)
	b = append(b, `,"limits":`...)
	b = AppendLimitList(b, limits)
	b = append(b, `,"degraded":`...)
	return strconv.AppendBool(b, v.Degraded)
}

// AppendLimitList adds a list of limits.
func AppendLimitList(b []byte, limits []Limit) []byte {
	b = append(b, '[')
	for i := range limits {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLimit(b, &limits[i])
	}
	return append(b, ']')
}

// AppendName adds a name as a JSON string, or null for none.
func AppendName(b []byte, name string) []byte {
	if name == "" {
		return append(b, "null"...)
	}
	return AppendString(b, name)
}

func appendLimit(b []byte, s *Limit) []byte {
	b = append(b, `{"name":`...)
	b = AppendString(b, s.Name)
	b = append(b, `,"limit":`...)
	b = strconv.AppendInt(b, int64(s.Tier.Limit), 10)
	b = append(b, `,"window_ms":`...)
	b = strconv.AppendInt(b, s.Window.Milliseconds(), 10)
	b = append(b, `,"remaining":`...)
	b = strconv.AppendInt(b, int64(s.Remaining), 10)
	b = append(b, `,"wait_ms":`...)
	b = strconv.AppendInt(b, s.Wait, 10)
	return append(b, '}')
}
