package client

import (
	"encoding/json"
	"time"
)

// Quota is what remains of the limits of a mailbox or an action.
type Quota struct {
	// Rule and Limit make the next one wait longest, for Wait; empty if there is no wait.
	Rule, Limit string
	Wait        time.Duration
	// RetryAt is ServerTime plus Wait, by the server's clock. Count down from Wait: clocks differ.
	RetryAt, ServerTime time.Time
	Limits              []Limit      // all limits, shortest window first
	Degraded            bool         // the server used its own records, as the shared storage was unavailable
	Countdown           string       // a token with which a page asks for the remaining wait, or empty
	Denied              string       // the rule by which a mailbox gets no email, whatever its limits are, or empty
	Suppressed          *Suppression // of a mailbox that gets no email, whatever its limits are
	Replayed            bool         // from the stored answer to an earlier request under the same key

	page *page
}

// Limit is one limit of a mailbox or an action.
type Limit struct {
	Name      string
	Limit     int // how many in the window
	Window    time.Duration
	Remaining int           // how many more now
	Wait      time.Duration // until one more is admitted; 0 if it is now
}

// ForCountdown returns the JSON that a back end passes to its page, for the update method of the
// element <mailgate-countdown>. It is null if the answer had no quota; update then changes nothing.
func (q *Quota) ForCountdown() json.RawMessage {
	if q == nil || q.page == nil {
		return json.RawMessage("null")
	}
	text, _ := json.Marshal(q.page) // strings and numbers are always JSON
	return text
}

// page has the members of an answer that the countdown reads.
type page struct {
	Limit     string          `json:"limit"`
	Wait      millis          `json:"wait_ms"`
	RetryAt   time.Time       `json:"retry_at"`
	Limits    []limitJSON     `json:"limits"`
	Countdown string          `json:"countdown,omitempty"`
	Replayed  bool            `json:"replayed,omitempty"`
	Challenge json.RawMessage `json:"challenge,omitempty"`
}

type limitJSON struct {
	Name      string `json:"name"`
	Limit     int    `json:"limit"`
	Window    millis `json:"window_ms"`
	Remaining int    `json:"remaining"`
	Wait      millis `json:"wait_ms"`
}

// answer has the members of all answers in openapi.yaml.
type answer struct {
	page
	Rule       string    `json:"rule"`
	ServerTime time.Time `json:"server_time"`
	Degraded   bool      `json:"degraded"`

	Status    any    `json:"status"` // "sent" of a send, a number of a problem
	ID        string `json:"id"`
	MessageID string `json:"message_id"`
	Email     string `json:"email"`
	ExpiresIn millis `json:"expires_in_ms"`
	Verified  bool   `json:"verified"`
	Allowed   *bool  `json:"allowed"`
	Delay     millis `json:"delay_ms"`
	Released  *bool  `json:"released"`

	Type        string   `json:"type"`
	Detail      string   `json:"detail"`
	Errors      []Field  `json:"errors"`
	SMTP        *SMTP    `json:"smtp"`
	Violated    []string `json:"violated-policies"`
	GuessesLeft int      `json:"guesses_left"`
	Suppression
	Denied     string       `json:"denied"`
	Suppressed *Suppression `json:"suppressed"`
}

// millis is a duration in milliseconds.
type millis int64

func (m millis) duration() time.Duration { return time.Duration(m) * time.Millisecond }

// decided reports whether the answer has a quota: each has a time.
func (a *answer) decided() bool { return !a.ServerTime.IsZero() }

func (a *answer) quota() Quota {
	q := Quota{
		Rule: a.Rule, Limit: a.Limit, Wait: a.Wait.duration(), RetryAt: a.RetryAt, ServerTime: a.ServerTime,
		Degraded: a.Degraded, Countdown: a.Countdown, Denied: a.Denied, Suppressed: a.Suppressed, Replayed: a.Replayed, page: &a.page,
	}
	for _, l := range a.Limits {
		q.Limits = append(q.Limits, Limit{l.Name, l.Limit, l.Window.duration(), l.Remaining, l.Wait.duration()})
	}
	return q
}
