package wire

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns the JSON of a value, as it is: nothing is escaped for HTML, and what is not
// UTF-8 becomes U+FFFD. It panics on a type that has none.
func Encode(value any) []byte {
	text, err := json.Marshal(value, lenient)
	if err != nil {
		panic(err)
	}
	return text
}

var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

// Time formats a time to the millisecond, in UTC.
func Time(ms int64) string { return string(appendTime(nil, ms)) }

// Moment is a time in Unix milliseconds, which JSON has as Time formats it. 0 is none.
type Moment int64

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return []byte("null"), nil
	}
	return append(appendTime([]byte{'"'}, int64(m)), '"'), nil
}

// appendTime takes the one format that package time has a short way for, and adds the milliseconds.
func appendTime(b []byte, ms int64) []byte {
	at := time.UnixMilli(ms).UTC()
	b = at.AppendFormat(b, time.RFC3339)
	part := 1000 + at.Nanosecond()/1e6
	b = strconv.AppendInt(b[:len(b)-1], int64(part), 10)
	b[len(b)-4] = '.'
	return append(b, 'Z')
}

// Seconds converts milliseconds to whole seconds for a header, rounded up so that a client that
// waits is admitted.
func Seconds(ms int64) int64 {
	seconds := ms / 1000
	if ms%1000 > 0 {
		seconds++
	}
	return seconds
}

// Quota is the problem type of a reached limit. Ours begins the type of every other problem: a
// reference to the server's own page, so that it is the same string on each server. A program that
// has no such page refers to Explained.
const (
	Quota = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	Ours  = "/docs#"

	Explained = "https://github.com/mailgate/mailgate/blob/main/docs/problems.md#"
)

// ProblemType is the media type of problems (RFC 9457).
const ProblemType = "application/problem+json"
