package mailer

// ComposeKind says what kind of trouble a mail met before it was one.
type ComposeKind string

const (
	// UnknownTemplate: there is no template of that name.
	UnknownTemplate ComposeKind = "unknown-template"
	// BadField: a field of the Request will not do.
	BadField ComposeKind = "bad-field"
	// NotComposed: the fault is on this side; Unwrap has the cause.
	NotComposed ComposeKind = "not-composed"
)

// ComposeError is what Check and Compose fail with. It holds nothing of the
// values it complains about.
type ComposeError struct {
	Kind ComposeKind
	// Field is the Request's field in the words of the HTTP contract, such as
	// "template" or "data"; empty for NotComposed.
	Field string
	// Reason finishes the sentence that the field begins.
	Reason string

	cause error
}

// Error is one sentence.
func (e *ComposeError) Error() string {
	if e.Field == "" {
		return "mailer: " + e.Reason
	}
	return "mailer: " + e.Field + " " + e.Reason
}

// Unwrap gives the cause of NotComposed.
func (e *ComposeError) Unwrap() error { return e.cause }

func badField(field, reason string) *ComposeError {
	return &ComposeError{Kind: BadField, Field: field, Reason: reason}
}

func notComposed(reason string, cause error) *ComposeError {
	return &ComposeError{Kind: NotComposed, Reason: reason, cause: cause}
}
