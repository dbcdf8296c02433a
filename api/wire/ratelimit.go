package wire

import (
	"encoding/base64"
	"strconv"
)

// The headers of draft-ietf-httpapi-ratelimit.
const (
	RateLimitHeader       = "RateLimit"
	RateLimitPolicyHeader = "RateLimit-Policy"
)

// roomOfLine is the length that most values have at most, in bytes.
const roomOfLine = 256

// RateLimit returns the value of RateLimit: "minute";r=0;t=60, and so on. t is the seconds
// until r grows, and 0 where all of the limit remains.
func RateLimit(limits []Limit) string {
	b := make([]byte, 0, roomOfLine)
	for _, l := range limits {
		b = appendItem(b, l, ";r=", int64(l.Remaining), ";t=", Seconds(l.Refill))
	}
	return string(b)
}

// RateLimitPolicy returns the value of RateLimit-Policy: "minute";q=1;w=60, and so on.
func RateLimitPolicy(limits []Limit) string {
	b := make([]byte, 0, roomOfLine)
	for _, l := range limits {
		b = appendItem(b, l, ";q=", int64(l.Limit), ";w=", Seconds(l.Window))
	}
	return string(b)
}

// appendItem adds an item to a list. pk tells a client that the limits of another mailbox are
// others. The names of limits need no escapes.
func appendItem(b []byte, l Limit, one string, first int64, two string, second int64) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(append(append(b, '"'), l.Name...), '"')
	b = strconv.AppendInt(append(b, one...), first, 10)
	b = strconv.AppendInt(append(b, two...), second, 10)
	if l.Partition != "" {
		b = append(b, ";pk=:"...)
		b = base64.StdEncoding.AppendEncode(b, []byte(l.Partition))
		b = append(b, ':')
	}
	return b
}
