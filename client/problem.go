package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Kind says why mailgate said no. The ones that a caller may want to tell apart have
// names here; openapi.yaml has them all.
type Kind string

// The kinds, and what became of the mailbox's quota by the request that was answered so.
const (
	Invalid           Kind = "invalid"               // a field will not do, see Fields; untouched
	Unauthorized      Kind = "unauthorized"          // no key, or a wrong one; untouched
	UnknownAction     Kind = "unknown-action"        // the operator has none of this name
	UnknownRule       Kind = "unknown-rule"          // mailgate has none of this name
	RecipientRejected Kind = "recipient-rejected"    // the relay refused for good, see SMTP; charged
	RelayUnavailable  Kind = "relay-unavailable"     // the mail certainly did not leave; given back
	DeliveryUnknown   Kind = "delivery-unknown"      // the mail may arrive, and is never sent again; charged
	StoreUnavailable  Kind = "store-unavailable"     // mailgate cannot decide now; untouched or given back, but a guess may be spent
	Busy              Kind = "busy"                  // too many sends are waiting; given back
	KeyMismatch       Kind = "idempotency-mismatch"  // the key was used for another request; untouched
	KeyInFlight       Kind = "idempotency-in-flight" // the first request under this key is still at work
)

// A Problem is the error where mailgate said no for another reason than a limit.
type Problem struct {
	// Kind is empty where something other than mailgate answered, such as a proxy.
	Kind   Kind
	Status int // the HTTP status
	// Detail says it to a person, in English. Whatever answered has written it.
	Detail string
	Fields []Field // of Invalid: every field that will not do
	SMTP   *SMTP   // of RecipientRejected: what the relay said
	// ID is the send that mailgate's log and store know, and Standing how the mailbox
	// stands; only where the send was charged.
	ID       string
	Standing *Standing
	// Replayed says that this is the answer to an earlier request under the same key, and
	// that its Standing tells of that moment.
	Replayed bool
	// RetryAfter is how long the server wants to be left alone. 0 if it has not said.
	RetryAfter time.Duration
	RequestID  string // what mailgate's log calls the request
}

// A Field is one that will not do.
type Field struct {
	Field  string // its name
	Reason string // a word for programs
	Detail string // a sentence for a person
}

// SMTP is what a relay said.
type SMTP struct {
	Code     int
	Enhanced string // such as 5.1.1, or empty
	Message  string // may quote the address
}

// maxShown is how many fields are in an error's message: more than a request has.
const maxShown = 8

// Error has the kind, the fields and the request's ID, and nothing that the other side
// has made up: that could quote what it was asked.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Kind == "" {
		fmt.Fprintf(&b, "something that is not mailgate answers %d", p.Status)
	} else {
		fmt.Fprintf(&b, "mailgate says %s (%d)", word(string(p.Kind)), p.Status)
	}
	separator := ": "
	for _, f := range p.Fields[:min(len(p.Fields), maxShown)] {
		b.WriteString(separator + word(f.Field) + " " + word(f.Reason))
		separator = ", "
	}
	if p.RequestID != "" {
		fmt.Fprintf(&b, ", request %s", word(p.RequestID))
	}
	return b.String()
}

// word lets a short word of letters, digits, dots and dashes pass, as the names of fields,
// rules and limits are; no address and hardly a secret is one.
func word(text string) string {
	odd := strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r|0x20 && r|0x20 <= 'z'
		return !letter && !('0' <= r && r <= '9') && !strings.ContainsRune("._-", r)
	})
	if odd || text == "" || len(text) > 64 {
		return "?"
	}
	return text
}

const (
	ours  = "urn:mailgate:problem:"
	quota = "https://iana.org/assignments/http-problem-types#quota-exceeded"
)

// problemJSON is all that a problem document of mailgate's may have.
type problemJSON struct {
	standingJSON
	Type     string   `json:"type"`
	Detail   string   `json:"detail"`
	ID       string   `json:"id"`
	Errors   []Field  `json:"errors"`
	SMTP     *SMTP    `json:"smtp"`
	Violated []string `json:"violated-policies"`
	Attempts *int     `json:"attempts_left"`
}

// refusal is the error that an answer other than 200 is. What cannot be read is not
// mailgate's.
func (r reply) refusal() error {
	p := &Problem{Status: r.status, RetryAfter: retryAfter(r.header), RequestID: r.header.Get("X-Request-Id")}
	var j problemJSON
	if json.Unmarshal(r.body, &j) != nil {
		return p
	}
	p.Detail = j.Detail
	if j.Type == quota && r.status == http.StatusTooManyRequests && j.whole() {
		return &Wait{Standing: j.standing(), Violated: j.Violated, Detail: j.Detail, RequestID: p.RequestID}
	}
	kind, ok := strings.CutPrefix(j.Type, ours)
	if !ok {
		return p
	}
	p.Kind, p.Fields, p.SMTP, p.ID = Kind(kind), j.Errors, j.SMTP, j.ID
	p.Replayed = replayed(r.header)
	if j.whole() {
		standing := j.standing()
		p.Standing = &standing
	}
	return codeRefusal(p, j.Attempts)
}

// retryAfter reads seconds, or a date, which counts from the answer's own: the clock here
// may be another. Anything else is 0.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(text)
	now, bad := http.ParseTime(header.Get("Date"))
	if err != nil || bad != nil {
		return 0
	}
	return max(0, until.Sub(now))
}
