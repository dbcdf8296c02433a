package delivery

import (
	"errors"

	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
)

// Kind says what became of a send that was not accepted.
type Kind string

const (
	// Limited: a limit is reached. Result.Decision says which, and how long to wait.
	Limited Kind = "quota-exceeded"
	// Suppressed: the recipient is to get no email. Suppression says why.
	Suppressed Kind = "suppressed"
	// Denied: the operator's rules deny the send for good. Rule says which.
	Denied Kind = "recipient-denied"
	// Rejected: a relay refused the email for good. The send stays charged.
	Rejected Kind = "rejected"
	// Unavailable: no relay accepted the email. It certainly never left, as with all kinds below
	// but Unknown and Failed.
	Unavailable Kind = "unavailable"
	// Deferred is Unavailable where the relay deferred the recipient, which a visitor can
	// cause. The visitor's quota stays charged.
	Deferred Kind = "deferred"
	// Busy: too many sends wait for a relay, or the position in a queue comes too late.
	Busy Kind = "busy"
	// Storage: the records cannot be read or written.
	Storage Kind = "store-unavailable"
	// InFlight: another attempt under the key is in progress.
	InFlight Kind = "in-flight"
	// Mismatch: the key was used for another request.
	Mismatch Kind = "mismatch"
	// Unknown: the email may have left, and no relay has said so. The send stays charged.
	Unknown Kind = "unknown"
	// Failed: a fault of the program. If the email may have left the send stays charged.
	Failed Kind = "failed"
)

// Error says why there is no [Result]. Its text names neither mailbox nor secret.
type Error struct {
	Kind Kind
	// RetryAfter is how many milliseconds to wait before trying again, 0 if that is unknown.
	RetryAfter int64
	// Reply is what the relay said, where it said something.
	Reply *relay.Reply
	// Result is what is known of the send. With Limited, Rejected and Unknown it has the Decision.
	// Its ID is that of the email that may have left, or would have been sent.
	Result Result
	// Suppression is why the recipient is Suppressed.
	Suppression suppression.Entry
	Rule        string // that has Denied it
	Err         error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return "send " + string(e.Kind)
	}
	return "send " + string(e.Kind) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	// ErrQueue is the cause of Busy when the send's position in a queue comes too late.
	ErrQueue = errors.New("the queue is longer than the send's deadline")

	errTaken    = errors.New("the lease ended, so another attempt may have sent the email")
	errDegraded = errors.New("other nodes cannot be asked whether they sent the email")
	errUnknown  = errors.New("an earlier attempt ended after it handed the email over")
)

// failure finds the kind of an error.
func failure(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Kind: Failed, Err: err}
	if refused, ok := errors.AsType[*relay.Error](err); ok {
		e.Kind, e.RetryAfter = Kind(refused.Outcome), refused.RetryAfter.Milliseconds() // the words are the same
		if e.Kind == Rejected {
			e.Reply = refused.Reply
		}
		return e
	}
	if late, ok := errors.AsType[tooLate](err); ok {
		e.Kind, e.RetryAfter = Busy, late.delay
	}
	if errors.Is(err, throttle.ErrUnavailable) {
		e.Kind = Storage
	}
	return e
}

// outcome returns the word of an end in metrics.
func outcome(err error) string {
	if err == nil {
		return "sent"
	}
	return string(failure(err).Kind)
}
