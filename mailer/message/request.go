package message

import (
	"maps"
	"slices"
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
)

// Request is what one email says, and its recipient.
type Request struct {
	To address.Address
	// Template and Locale choose the text. No Template means DefaultTemplate; of an
	// unknown Locale the nearest is taken, or the default.
	Template, Locale string
	// Code is 4 to 12 of 0-9, A-Z and a-z.
	Code string
	// ExpiresInMS is how long the code is valid; with 0 the email does not say.
	ExpiresInMS int64
	// Data is for the template: up to 16 values of one line and up to 2,048 characters,
	// under names like those of variables.
	Data map[string]string
	// NotMe is a link by which the recipient says that they did not ask for the email. A template need not have it.
	NotMe string
	// ID is the part of the Message-ID before the domain. No other email has it.
	ID string
	// Fields are more header fields, each ended by CRLF, before all others.
	Fields string
	// NowMS is the time in the Date header, in Unix milliseconds.
	NowMS int64
}

// check checks each field that comes from outside by itself, and finds the template.
func (r Request) check(templates *Templates) (t *template, wrong []*Error) {
	t = templates.find(r.Template, r.Locale)
	if linked := t != nil && t.linked && r.Code == ""; !linked && (len(r.Code) < minCode || len(r.Code) > maxCode || !isWord(r.Code, "")) {
		wrong = append(wrong, &Error{"code", "must be 4 to 12 of 0-9, A-Z and a-z"})
	}
	if t == nil {
		wrong = append(wrong, &Error{"template", "is unknown; known are " + strings.Join(slices.Sorted(maps.Keys(templates.byName)), ", ")})
	}
	if problem := dataProblem(r.Data); problem != "" {
		wrong = append(wrong, &Error{"data", problem})
	}
	return t, wrong
}

func dataProblem(data map[string]string) string {
	if len(data) > maxData {
		return "has more than 16 values"
	}
	for key, value := range data {
		if key == "" || len(key) > maxDataKey || !isWord(key, "_") || '0' <= key[0] && key[0] <= '9' {
			return "has a name that is not letters, digits and _, up to 64 of them, with no digit first"
		}
		if problem := plainTextProblem(value, maxDataValue); problem != "" {
			return "has a value that " + problem
		}
	}
	return ""
}

// checkSubject refuses a request that makes an unsuitable subject.
func (r Request) checkSubject(subject string) *Error {
	if problem := subjectProblem(subject); problem != "" {
		return &Error{r.variable(), "makes a subject that " + problem}
	}
	return nil
}

// variable returns the field that varies most, and so is at fault where a request does not suit
// the template. Codes are tried at their bounds at the start.
func (r Request) variable() string {
	if len(r.Data) > 0 {
		return "data"
	}
	return "email"
}

// isWord reports whether text is made of ASCII letters, digits and the marks.
func isWord(text, marks string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(marks, c)
	})
}

// Error says what is wrong with one field. It holds no value of the request.
type Error struct {
	Field  string // as in the HTTP contract: "code", "data", "email", or "template" of one that is unknown
	Reason string // finishes the sentence that the field begins
}

// Error returns one sentence.
func (e *Error) Error() string { return e.Field + " " + e.Reason }
