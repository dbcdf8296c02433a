package wire

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// The headers of draft-ietf-httpapi-ratelimit.
const (
	RateLimitHeader       = "RateLimit"
	RateLimitPolicyHeader = "RateLimit-Policy"
)

// RateLimit is the value of RateLimit: "minute";r=0;t=60, and so on. t is the seconds until r
// grows, and 0 where all of the limit remains.
func RateLimit(limits []Limit) string {
	var b strings.Builder
	for _, l := range limits {
		item(&b, l, "r", int64(l.Remaining), "t", Seconds(l.Refill))
	}
	return b.String()
}

// RateLimitPolicy is the value of RateLimit-Policy: "minute";q=1;w=60, and so on.
func RateLimitPolicy(limits []Limit) string {
	var b strings.Builder
	for _, l := range limits {
		item(&b, l, "q", int64(l.Limit), "w", Seconds(l.Window))
	}
	return b.String()
}

// item adds an item to a list. pk tells a client that the limits of another mailbox are others.
// The names of limits need no escapes.
func item(b *strings.Builder, l Limit, one string, first int64, two string, second int64) {
	if b.Len() > 0 {
		b.WriteString(", ")
	}
	fmt.Fprintf(b, `"%s";%s=%d;%s=%d`, l.Name, one, first, two, second)
	if l.Partition != "" {
		b.WriteString(";pk=:" + base64.StdEncoding.EncodeToString([]byte(l.Partition)) + ":")
	}
}
