package wire

import (
	"strconv"

	"github.com/mailgate/mailgate/throttle"
	"github.com/valyala/fasthttp"
)

// The headers of draft-ietf-httpapi-ratelimit, spelt as they are there. Fiber's own way
// of writing them would spell the first Ratelimit.
const (
	RateLimit       = "RateLimit"
	RateLimitPolicy = "RateLimit-Policy"
)

// SetRateLimit writes both headers of these limits; of none, none. The line is memory to
// use, and is returned.
func SetRateLimit(h *fasthttp.ResponseHeader, line []byte, limits []throttle.Standing) []byte {
	if len(limits) == 0 {
		return line
	}
	line = AppendRateLimitPolicy(line[:0], limits)
	h.SetCanonical([]byte(RateLimitPolicy), line)
	line = AppendRateLimit(line[:0], limits)
	h.SetCanonical([]byte(RateLimit), line)
	return line
}

// AppendRateLimit adds the value of RateLimit: "minute";r=0;t=60, and so on.
func AppendRateLimit(b []byte, limits []throttle.Standing) []byte {
	for i := range limits {
		b = appendItem(b, i, limits[i].Name)
		b = append(b, ";r="...)
		b = strconv.AppendInt(b, int64(limits[i].Remaining), 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, Seconds(limits[i].Wait), 10)
	}
	return b
}

// AppendRateLimitPolicy adds the value of RateLimit-Policy: "minute";q=1;w=60, and so on.
func AppendRateLimitPolicy(b []byte, limits []throttle.Standing) []byte {
	for i := range limits {
		b = appendItem(b, i, limits[i].Name)
		b = append(b, ";q="...)
		b = strconv.AppendInt(b, int64(limits[i].Limit), 10)
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, Seconds(limits[i].Window), 10)
	}
	return b
}

// appendItem begins the i-th item of a list. The names of limits need no escapes.
func appendItem(b []byte, i int, name string) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}
