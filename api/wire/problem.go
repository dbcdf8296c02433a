package wire

import (
	"strconv"

	"github.com/mailgate/mailgate/throttle"
)

// Quota is the type of the problem that a full limit is. All others begin with Ours.
const (
	Quota = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	Ours  = "urn:mailgate:problem:"
)

// QuotaTitle is its title.
const QuotaTitle = "The quota is exceeded"

// ProblemType is the media type of problems (RFC 9457).
const ProblemType = "application/problem+json"

// AppendProblem begins a problem, up to where its detail follows as a JSON string. The
// type is in two parts, and neither they nor the title need escapes.
func AppendProblem(b []byte, kind, name, title string, status int) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	b = append(b, name...)
	b = append(b, `","title":"`...)
	b = append(b, title...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	return append(b, `,"detail":`...)
}

// AppendReached adds, as a JSON string, the sentences for a person: which limit of whom
// is reached, and when the next may come. None of the texts needs escapes.
func AppendReached(b []byte, v *throttle.Verdict, whose, next string) []byte {
	b = append(b, `"The limit `...)
	b = append(b, v.Limit...)
	b = append(b, " of "...)
	b = append(b, whose...)
	b = append(b, " is reached. "...)
	b = append(b, next...)
	b = append(b, " in "...)
	b = strconv.AppendInt(b, Seconds(Wait(v)), 10)
	return append(b, ` s."`...)
}

// AppendViolated adds violated-policies: the names of those limits that are full.
func AppendViolated(b []byte, limits []Limit) []byte {
	b = append(b, `"violated-policies":[`...)
	start := len(b)
	for i := range limits {
		if limits[i].Remaining > 0 {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = AppendString(b, limits[i].Name)
	}
	return append(b, ']')
}
