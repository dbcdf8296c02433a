package wire

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mailgate/mailgate/throttle"
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

// Limit is the state of one tier, as answers list it.
type Limit struct {
	Name      string `json:"name"`
	Limit     int    `json:"limit"`
	Window    int64  `json:"window_ms"`
	Remaining int    `json:"remaining"`
	Wait      int64  `json:"wait_ms"`

	Refill    int64  `json:"-"` // milliseconds until Remaining grows
	Partition string `json:"-"` // what the tier counts by, as a keyed hash; empty if there is but one
}

// Limits converts the tiers of a verdict about a partition. Waits count from the answer's
// server_time, as in [Wait].
func Limits(v *throttle.Verdict, partition string) []Limit {
	behind := Wait(v) - v.Wait
	all := make([]Limit, len(v.Tiers))
	for i, t := range v.Tiers {
		all[i] = Limit{t.Name, t.Limit, t.Window.Milliseconds(), t.Remaining, t.Wait, t.Refill, partition}
		if t.Wait > 0 {
			all[i].Wait += behind
		}
		if t.Refill > 0 {
			all[i].Refill += behind
		}
	}
	return all
}

// Wait returns how many milliseconds from the answer's server_time the next one is admitted.
// Where the clock has stepped back that is more than the verdict's own wait, which counts from
// the newest admission.
func Wait(v *throttle.Verdict) int64 { return v.RetryAt - v.Now }

// Verdict has the members of every answer about waiting.
type Verdict struct {
	Rule       *string `json:"rule"`
	Limit      *string `json:"limit"`
	Wait       int64   `json:"wait_ms"`
	RetryAt    string  `json:"retry_at"`
	ServerTime string  `json:"server_time"`
	Limits     []Limit `json:"limits"`
	Degraded   bool    `json:"degraded"`
	Countdown  string  `json:"countdown,omitempty"`
}

// NewVerdict returns the verdict of a rule, with these limits.
func NewVerdict(rule string, v *throttle.Verdict, limits []Limit) Verdict {
	return Verdict{
		Rule: Name(rule), Limit: Name(v.Limit), Wait: Wait(v), RetryAt: Time(v.RetryAt), ServerTime: Time(v.Now),
		Limits: limits, Degraded: v.Degraded,
	}
}

// Name returns a pointer to the name, or nil for an empty one, which JSON shows as null.
func Name(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// Time formats a time to the millisecond, in UTC.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Seconds converts milliseconds to whole seconds for a header, rounded up so that a client that
// waits is admitted.
func Seconds(ms int64) int64 {
	seconds := ms / 1000
	if ms%1000 > 0 {
		seconds++
	}
	return seconds
}

// Quota is the problem type of a reached limit. Ours begins the type of every other problem.
const (
	Quota = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	Ours  = "urn:mailgate:problem:"
)

// QuotaTitle is the title of Quota.
const QuotaTitle = "Quota exceeded"

// ProblemType is the media type of problems (RFC 9457).
const ProblemType = "application/problem+json"

// Problem has the members of every problem.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Reached returns the detail of a refusal: which limit of whose is reached and when to try again.
func Reached(v *throttle.Verdict, whose string) string {
	return "The " + v.Limit + " limit of " + whose + " is reached. Try again in " + strconv.FormatInt(Seconds(Wait(v)), 10) + " s."
}

// Violated names those limits that are full.
func Violated(limits []Limit) []string {
	full := []string{}
	for _, l := range limits {
		if l.Remaining <= 0 {
			full = append(full, l.Name)
		}
	}
	return full
}
