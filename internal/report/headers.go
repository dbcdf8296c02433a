package report

import (
	"encoding/base64"
	"strconv"

	"github.com/mailgate/mailgate/internal/wire"
)

// The headers of draft-ietf-httpapi-ratelimit.
const (
	RateLimit       = "RateLimit"
	RateLimitPolicy = "RateLimit-Policy"
)

// Header returns the fields RateLimitPolicy and RateLimit of every answer with the report, if it has limits. They
// are as in "minute";q=1;w=60 and "minute";r=0;t=60. t is the seconds until r grows, and 0 if all of the limit
// remains.
func (r *Report) Header() (policy, state []byte) {
	if len(r.Limits)+len(r.others) == 0 {
		return nil, nil
	}
	const room = 256 // that most values need at most
	both := make([]byte, 2*room)
	policy, state = both[:0:room], both[room:room]
	for _, all := range []Limits{r.Limits, r.others} {
		for i := range all {
			l := &all[i]
			policy = l.appendItem(policy, ";q=", int64(l.Max), ";w=", wire.Seconds(l.Window))
			state = l.appendItem(state, ";r=", int64(l.Remaining), ";t=", wire.Seconds(l.Refill))
		}
	}
	return policy, state
}

// appendItem adds an item to a list. pk tells a client that the limits of another mailbox are
// others. The names of limits need no escapes.
func (l *Limit) appendItem(b []byte, one string, first int64, two string, second int64) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(append(append(b, '"'), l.Name...), '"')
	b = strconv.AppendInt(append(b, one...), first, 10)
	b = strconv.AppendInt(append(b, two...), second, 10)
	if l.partition != "" {
		b = append(base64.StdEncoding.AppendEncode(append(b, ";pk=:"...), []byte(l.partition)), ':')
	}
	return b
}
