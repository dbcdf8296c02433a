package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// LimitError is the error when a limit was reached. Nothing was sent or counted, and the request
// did not prolong the wait. Rule, Limit and Wait are those of the longest wait. Rule is "mailbox"
// or another rule, the name of an action, or "guesses" or "lookups" for the limits of
// [Client.Verify] and [Client.Mailbox].
type LimitError struct {
	Quota
	Violated  []string // all limits that were reached; those of rules other than mailbox as rule.limit
	Detail    string   // for people, in English
	RequestID string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("limit %s of rule %s reached, retry in %v", token(e.Limit), token(e.Rule), e.Wait)
}

// ErrUnreadable is the error for a 200 that is not an answer of mailgate.
var ErrUnreadable = errors.New("unreadable answer")

// Kind is the last part of a problem's type in openapi.yaml, which lists all of them.
type Kind string

// The kinds that callers may want to tell apart.
const (
	Invalid             Kind = "invalid"               // see Fields
	Unauthorized        Kind = "unauthorized"          // no key or a wrong one
	ChallengeRequired   Kind = "challenge-required"    // see Challenge; not charged
	UnknownAction       Kind = "unknown-action"        // the operator set no such action
	CodeIncorrect       Kind = "code-incorrect"        // see GuessesLeft
	CodeExpired         Kind = "code-expired"          // all codes of the mailbox are expired or used, or none was sent
	RecipientRejected   Kind = "recipient-rejected"    // the relay refused permanently, see SMTP; charged
	RecipientSuppressed Kind = "recipient-suppressed"  // see Suppression; not charged
	RecipientDenied     Kind = "recipient-denied"      // by a rule of the operator, see Rule; not charged
	RelayUnavailable    Kind = "relay-unavailable"     // not sent
	DeliveryUnknown     Kind = "delivery-unknown"      // the email may arrive and is never sent again; charged
	StoreUnavailable    Kind = "store-unavailable"     // mailgate's storage failed
	Busy                Kind = "busy"                  // too many requests; nothing was done
	KeyMismatch         Kind = "idempotency-mismatch"  // the key was used for another request
	KeyInFlight         Kind = "idempotency-in-flight" // the first request under the key is in progress
)

// APIError is an answer other than success or a limit.
type APIError struct {
	Kind       Kind // empty if something other than mailgate answered, such as a proxy
	Status     int  // of HTTP
	Detail     string
	Fields     []Field       // of Invalid
	SMTP       *SMTP         // of RecipientRejected
	ID         string        // the send's, if it was charged
	Quota      *Quota        // the mailbox's, if the send was charged or challenged
	RetryAfter time.Duration // 0 if the server did not say
	RequestID  string        // in mailgate's log

	GuessesLeft int          // of CodeIncorrect
	Suppression *Suppression // of RecipientSuppressed
	Rule        string       // of RecipientDenied
	// Challenge, of ChallengeRequired, is what is accepted. [Quota.ForCountdown] has it, too, for the element that
	// solves it; the solution is Mail.Challenge.
	Challenge json.RawMessage
}

// Suppression says why an address gets no email.
type Suppression struct {
	Reason string    `json:"reason"` // complaint, manual, hard-bounce or not-me
	Until  time.Time `json:"until"`  // zero: until an operator removes it
}

// Field is an invalid field of a request.
type Field struct {
	Field  string
	Reason string // a word for programs
	Detail string // a sentence for people
}

// SMTP is the reply of a relay.
type SMTP struct {
	Code     int
	Enhanced string // such as 5.1.1, or empty
	Message  string // may quote the address
}

func (e *APIError) Error() string {
	if e.Kind == "" {
		return fmt.Sprintf("status %d, not from mailgate", e.Status)
	}
	text := fmt.Sprintf("%s (status %d, request %s)", token(string(e.Kind)), e.Status, token(e.RequestID))
	for _, f := range e.Fields {
		text += fmt.Sprintf(", %s: %s", token(f.Field), token(f.Reason))
	}
	return text
}

// UncertainError is the error when the request may have taken effect, and the call could not
// find out. The same [Mail] with this Key finds out, within 24 hours and without a second email;
// with a new key it may send another.
type UncertainError struct {
	Key string // the Idempotency-Key of a send or a take, given or generated; else empty
	Err error  // how the last attempt ended
}

func (e *UncertainError) Error() string { return "may have taken effect: " + e.Err.Error() }

func (e *UncertainError) Unwrap() error { return e.Err }

// NetworkError is the error when there was no answer. Err may quote what came over the network;
// Error does not.
type NetworkError struct {
	Err  error
	sent bool
}

// newNetworkError drops the URL, which may contain an address.
func newNetworkError(err error, sent bool) *NetworkError {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return &NetworkError{Err: err, sent: sent}
}

func (e *NetworkError) Error() string {
	if !e.sent {
		return "cannot connect: " + cause(e.Err)
	}
	return "no answer: " + cause(e.Err)
}

func (e *NetworkError) Unwrap() error { return e.Err }

// cause describes an error in words of this package: its own may quote the other side.
func cause(err error) string {
	var network net.Error
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	}
	return "connection failed"
}

// token returns a short word of letters, digits, dots, dashes and underscores as it is, as names of
// fields, rules and limits are. Anything else could quote an address or a secret.
func token(text string) string {
	if safeToken.MatchString(text) {
		return text
	}
	return "?"
}

var safeToken = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

const quotaType = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem returns the error of an answer other than 200. A type that is not mailgate's came from a
// proxy.
func (a *answer) problem(response *http.Response) error {
	p := &APIError{Status: response.StatusCode, Detail: a.Detail, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 32); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	if a.Type == quotaType && p.Status == http.StatusTooManyRequests && a.decided() {
		return &LimitError{a.quota(), a.Violated, a.Detail, p.RequestID}
	}
	kind, ok := strings.CutPrefix(a.Type, "/docs#")
	if !ok {
		return p
	}
	p.Kind, p.Fields, p.SMTP, p.ID, p.GuessesLeft = Kind(kind), a.Errors, a.SMTP, a.ID, a.GuessesLeft
	if p.Kind == RecipientSuppressed {
		p.Suppression = &Suppression{a.Reason, a.Until}
	}
	if p.Kind == ChallengeRequired {
		p.Challenge = a.Challenge
	}
	if p.Kind == RecipientDenied {
		p.Rule = a.Rule
	}
	if a.decided() {
		quota := a.quota()
		p.Quota = &quota
	}
	return p
}
