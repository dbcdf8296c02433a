package mailer

import (
	"slices"
	"strings"
)

// The bounds of a Request.
const (
	minCode      = 4
	maxCode      = 12
	maxData      = 16
	maxDataKey   = 64
	maxDataValue = 256
	maxID        = 64
	// maxExpiry is a hundred years, maxNow the end of the year 9999: beyond
	// them a Date header could not be written.
	maxExpiry = 100 * 366 * 24 * 3600 * 1000
	maxNow    = 253402300799999
)

// Request is what one mail says and to whom.
type Request struct {
	// To is the recipient.
	To Address
	// Template and Locale choose the text. No Template means DefaultTemplate;
	// a Locale that is not there means the nearest, or the default.
	Template, Locale string
	// Code is 4 to 12 of 0-9, A-Z and a-z.
	Code string
	// ExpiresInMS is how long the code is valid; 0 means the mail says nothing
	// about it.
	ExpiresInMS int64
	// Data is for the template: up to 16 values of up to 256 characters, one
	// line each, under names like those of variables.
	Data map[string]string
	// ID is the send's id, up to 64 of 0-9, A-Z, a-z, - and _. It becomes part
	// of the Message-ID.
	ID string
	// NowMS is the time in the Date header, in Unix milliseconds.
	NowMS int64
}

// check checks every field that reaches the mail and finds its template.
func (r Request) check(templates *Templates) (*mailTemplate, *ComposeError) {
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
	template := templates.find(r.Template, r.Locale)
	if template == nil {
		return nil, &ComposeError{Kind: UnknownTemplate, Field: "template", Reason: "is unknown"}
	}
	return template, r.checkData(template.needs)
}

func (r Request) checkData(needs []string) *ComposeError {
	if len(r.Data) > maxData {
		return badField("data", "has more than 16 values")
	}
	for key, value := range r.Data {
		if len(key) > maxDataKey || !isIdentifier(key) {
			return badField("data", "has a name that is not letters, digits and _, up to 64 of them, with no digit first")
		}
		if problem := plainTextProblem(value, maxDataValue); problem != "" {
			return badField("data", "has a value that "+problem)
		}
	}
	missing := slices.IndexFunc(needs, func(key string) bool {
		_, ok := r.Data[key]
		return !ok
	})
	if missing >= 0 {
		return badField("data", "lacks "+needs[missing]+", which the template needs")
	}
	return nil
}

// isWord reports whether text is made of ASCII letters, digits and the marks.
func isWord(text, marks string) bool {
	for i := 0; i < len(text); i++ {
		if !isLetterOrDigit(text[i]) && strings.IndexByte(marks, text[i]) < 0 {
			return false
		}
	}
	return true
}

func isIdentifier(key string) bool {
	return key != "" && isWord(key, "_") && (key[0] < '0' || key[0] > '9')
}
