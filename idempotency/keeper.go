package idempotency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
)

// A Keeper keeps records of requests. Its methods may be called from any number of
// goroutines, and each is one step that no other call comes in between.
//
// A name or an answer that does not pass its Check is the error of that check. Any other
// error means that there is no answer, and never that a request may be done: it is
// [ErrUnavailable] when the record could not be read or written, or the context ended,
// and then also wraps the cause. What was asked for may or may not have been done. After
// a Begin that was unavailable the name may be in flight until the lease ends: so its Outcome
// has the lease all the same, and nothing else, and Abandon takes back what was begun unheard.
// Finish and Abandon may be repeated. Errors name neither caller nor key.
type Keeper interface {
	// Begin asks whether a request is to be done. Of any number who ask at once, exactly
	// one is told Started.
	Begin(ctx context.Context, name Name, body Fingerprint) (Outcome, error)

	// BeginAs is Begin under a lease of the caller's own making, and may be repeated: who has
	// begun is told so once more, also where the first time was not heard.
	BeginAs(ctx context.Context, lease Lease) (Outcome, error)

	// Finish keeps the answer for those who ask again. It reports whether the answer was
	// kept: not if the lease has ended and somebody else has begun.
	Finish(ctx context.Context, lease Lease, answer Answer) (kept bool, err error)

	// Abandon frees the name at once, since what was begun was not done, or may be done
	// again. It reports whether the lease held the name.
	Abandon(ctx context.Context, lease Lease) (freed bool, err error)
}

// ErrUnavailable is the kind of every failure to read or write what is on record.
var ErrUnavailable = errors.New("the record of requests is unavailable")

// Unavailable is the error of a call that has no answer: it says what was being done, and
// is both ErrUnavailable and its cause.
func Unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, cause)
}

// An Outcome is the answer to Begin.
type Outcome struct {
	State      State
	Lease      Lease  // with Started: what Finish and Abandon ask for; with ErrUnavailable: what Abandon does
	Answer     Answer // with Replay: the first answer, the caller's to change
	RetryAfter int64  // with InFlight: milliseconds until the lease ends at the latest
	Degraded   bool   // with Started: somebody may have done it whom the keeper could not ask
}

// A State is what is to be done about a request.
type State int8

// The states. Only Started means that the request is to be done.
const (
	InFlight State = iota // somebody is doing it
	Started               // do it
	Replay                // it is done
	Mismatch              // the name belongs to another request
)

// String is the state's name, such as "in flight".
func (s State) String() string {
	names := [...]string{"in flight", "started", "replay", "mismatch"}
	if s < 0 || int(s) >= len(names) {
		return "state " + strconv.Itoa(int(s))
	}
	return names[s]
}

// A Lease is the right to do a request and to record its answer.
type Lease struct {
	Name  Name
	Body  Fingerprint
	Token Token
}

// ErrLease is the kind of a lease without a token.
var ErrLease = errors.New("a lease has a token")

// Check is the check that all who are handed a lease make first.
func (l Lease) Check() error {
	if l.Token.IsZero() {
		return ErrLease
	}
	return l.Name.Check()
}

// A Token tells one lease of a name from all others. The zero Token is none.
type Token [16]byte

// NewToken makes a Token that nobody has had.
func NewToken() (t Token) {
	_, _ = rand.Read(t[:]) // never fails
	return t
}

// IsZero reports whether it is the zero Token.
func (t Token) IsZero() bool { return t == Token{} }

// Terms are how long things are on record, in milliseconds.
type Terms struct {
	Lease int64 // a request in flight; longer than it can take
	Keep  int64 // an answer, from when it was given
}

// DefaultTerms are a lease of 60 seconds and answers for 24 hours.
func DefaultTerms() Terms { return Terms{Lease: 60_000, Keep: 24 * 60 * 60 * 1000} }

// ErrTerms is the kind of terms that will not do.
var ErrTerms = errors.New("a lease and the life of an answer are 1 ms to 366 days")

// Check is the check that every keeper makes of its terms.
func (t Terms) Check() error {
	const most = 366 * 24 * 60 * 60 * 1000
	if t.Lease < 1 || t.Lease > most || t.Keep < 1 || t.Keep > most {
		return ErrTerms
	}
	return nil
}
