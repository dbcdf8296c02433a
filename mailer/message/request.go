package message

import (
	"strings"

	"github.com/mailgate/mailgate/mailer/address"
)

// The bounds of a Request.
const (
	minCode      = 4
	maxCode      = 12
	maxData      = 16
	maxDataKey   = 64
	maxDataValue = 2048 // a link with a token fits
	maxID        = 64
	// maxExpiry is a hundred years, maxNow the end of the year 9999, beyond which a Date
	// header cannot be written.
	maxExpiry = 100 * 366 * 24 * 3600 * 1000
	maxNow    = 253402300799999
)

// Request is what one mail says, and its recipient.
type Request struct {
	To address.Address
	// Template and Locale choose the text. No Template means DefaultTemplate; of an
	// unknown Locale the nearest is taken, or the default.
	Template, Locale string
	// Code is 4 to 12 of 0-9, A-Z and a-z.
	Code string
	// ExpiresInMS is how long the code is valid; with 0 the mail does not say.
	ExpiresInMS int64
	// Data is for the template: up to 16 values of one line and up to 2,048 characters,
	// under names like those of variables.
	Data map[string]string
	// ID is the send's id, up to 64 of 0-9, A-Z, a-z, - and _. It becomes part of the
	// Message-ID.
	ID string
	// NowMS is the time in the Date header, in Unix milliseconds.
	NowMS int64
}

// check checks every field that reaches the mail and finds the template.
func (r Request) check(templates *Templates) (*template, error) {
	switch {
	case r.To.IsZero():
		return nil, badField("email", "is missing")
	case len(r.Code) < minCode || len(r.Code) > maxCode || !isWord(r.Code, ""):
		return nil, badField("code", "must be 4 to 12 of 0-9, A-Z and a-z")
	case len(r.ID) < 1 || len(r.ID) > maxID || !isWord(r.ID, "-_"):
		return nil, badField("id", "must be 1 to 64 of 0-9, A-Z, a-z, - and _")
	case r.ExpiresInMS < 0 || r.ExpiresInMS > maxExpiry:
		return nil, badField("expires_in_ms", "is out of range")
	case r.NowMS < 0 || r.NowMS > maxNow:
		return nil, badField("now", "is out of range")
	}
	t := templates.find(r.Template, r.Locale)
	if t == nil {
		return nil, &Error{Kind: UnknownTemplate, Field: "template", Reason: "is unknown"}
	}
	return t, r.checkData()
}

func (r Request) checkData() error {
	if len(r.Data) > maxData {
		return badField("data", "has more than 16 values")
	}
	for key, value := range r.Data {
		if key == "" || len(key) > maxDataKey || !isWord(key, "_") || '0' <= key[0] && key[0] <= '9' {
			return badField("data", "has a name that is not letters, digits and _, up to 64 of them, with no digit first")
		}
		if problem := plainTextProblem(value, maxDataValue); problem != "" {
			return badField("data", "has a value that "+problem)
		}
	}
	return nil
}

// isWord reports whether text is made of ASCII letters, digits and the marks.
func isWord(text, marks string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(marks, c)
	})
}

// Kind says what kind of fault kept a mail from being composed.
type Kind string

const (
	UnknownTemplate Kind = "unknown-template"
	BadField        Kind = "bad-field"    // a field of the Request is not valid
	NotComposed     Kind = "not-composed" // an internal fault; Unwrap has the cause
)

// Error is the error of Check and Compose. It holds no value of the request.
type Error struct {
	Kind   Kind
	Field  string // as in the HTTP contract, such as "template" or "data"; empty for NotComposed
	Reason string // finishes the sentence that the field begins
	cause  error
}

// Error is one sentence.
func (e *Error) Error() string { return strings.TrimSpace(e.Field + " " + e.Reason) }

// Unwrap returns the cause of NotComposed.
func (e *Error) Unwrap() error { return e.cause }

func badField(field, reason string) *Error {
	return &Error{Kind: BadField, Field: field, Reason: reason}
}

func notComposed(reason string, cause error) *Error {
	return &Error{Kind: NotComposed, Reason: reason, cause: cause}
}
