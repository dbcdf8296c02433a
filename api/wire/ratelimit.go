package wire

import (
	"encoding/base64"
	"strconv"

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
func SetRateLimit(h *fasthttp.ResponseHeader, line []byte, limits []Limit) []byte {
	if len(limits) == 0 {
		return line
	}
	line = AppendRateLimitPolicy(line[:0], limits)
	h.SetCanonical([]byte(RateLimitPolicy), line)
	line = AppendRateLimit(line[:0], limits)
	h.SetCanonical([]byte(RateLimit), line)
	return line
}

// AppendRateLimit adds the value of RateLimit: "minute";r=0;t=60, and so on. t is the seconds
// until r grows, and 0 where all of the limit remains.
func AppendRateLimit(b []byte, limits []Limit) []byte {
	for i := range limits {
		l := &limits[i]
		b = appendItem(b, i, l.Name)
		b = append(b, ";r="...)
		b = strconv.AppendInt(b, int64(l.Remaining), 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, Seconds(l.Refill), 10)
		b = appendPartition(b, l.Partition)
	}
	return b
}

// AppendRateLimitPolicy adds the value of RateLimit-Policy: "minute";q=1;w=60, and so on.
func AppendRateLimitPolicy(b []byte, limits []Limit) []byte {
	for i := range limits {
		l := &limits[i]
		b = appendItem(b, i, l.Name)
		b = append(b, ";q="...)
		b = strconv.AppendInt(b, int64(l.Tier.Limit), 10)
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, Seconds(l.Window.Milliseconds()), 10)
		b = appendPartition(b, l.Partition)
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

// appendPartition adds pk, which tells a client that the limits of another mailbox are others.
func appendPartition(b []byte, of string) []byte {
	if of == "" {
		return b
	}
	b = append(b, ";pk=:"...)
	b = base64.StdEncoding.AppendEncode(b, []byte(of))
	return append(b, ':')
}
