package verify

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// A Book keeps the codes of mailboxes. Its methods may be called from any number of
// goroutines, and each is one step that no other call comes in between.
//
// A mailbox is any text of 1 to throttle.MaxKey bytes; anything else is
// throttle.ErrKey. The clock is the book's.
//
// An error means that there is no answer, and never counts as a yes. It is
// [ErrUnavailable] when the record could not be read or written, or the context ended,
// and then also wraps the cause. What was asked for may or may not have been done: adding
// the same hash again is safe, and a check that was lost may have forgotten the codes.
// Errors name neither mailbox nor hash.
type Book interface {
	// Add makes the code right for lifetime milliseconds from now, which are 1 to
	// MaxLifetime; anything else is ErrLifetime. The rest is as with Codes.Add.
	Add(ctx context.Context, mailbox string, h Hash, lifetime int64) error

	// Check answers Correct, Incorrect or Expired, as Codes.Check does. With Correct
	// all codes of the mailbox have been forgotten.
	Check(ctx context.Context, mailbox string, h Hash) (Result, error)

	// Remove takes one code back, as Codes.Remove does; one that is not on record is no
	// error.
	Remove(ctx context.Context, mailbox string, h Hash) error

	// Forget forgets all codes of the mailbox.
	Forget(ctx context.Context, mailbox string) error
}

// A SharedBook is the Book of several processes. Each of them may go on alone while it is away,
// and tells it afterwards.
type SharedBook interface {
	Book

	// Record makes a code right that a process has made alone. Of one that was recorded before
	// nothing changes: it stays forgotten if it is. One that has expired is not right, which is
	// no error; and one that expires in more than MaxLifetime was made by a clock that is ahead.
	Record(ctx context.Context, mailbox string, made Kept) error

	// ForgetUntil forgets the codes of the mailbox that expire by then. To tell it late, or
	// twice, takes nothing from those that were made since.
	ForgetUntil(ctx context.Context, mailbox string, expires int64) error
}

// A LoneBook is the Book of one process of several, which goes on alone while the book that
// they share is away.
type LoneBook interface {
	Book

	// Add is of the kind [ErrMayBeRight] where the others may have the code, which is then
	// taken back. Another can be added in its place.
	Add(ctx context.Context, mailbox string, h Hash, lifetime int64) error

	// CheckAlone is Check for a guess that this process alone has counted. The others may
	// each have counted as many, so a code that they know of is not looked at: it is Correct
	// if it was made here while the shared book was away, which has not been told of it since,
	// and else ErrUnavailable, right or wrong.
	CheckAlone(ctx context.Context, mailbox string, h Hash) (Result, error)
}

// DefaultLifetime is how long a code is right, in milliseconds: ten minutes. MaxLifetime
// is the longest that a Book takes: a day.
const (
	DefaultLifetime = 10 * 60 * 1000
	MaxLifetime     = 24 * 60 * 60 * 1000
)

var (
	// ErrUnavailable is the kind of every failure to read or write what is on record.
	ErrUnavailable = errors.New("the codes are unavailable")
	// ErrMayBeRight is the kind of an Add of a [LoneBook] that the others may have heard of,
	// though nobody knows. The code must not be mailed.
	ErrMayBeRight = errors.New("the code may be right elsewhere")
	// ErrLifetime is the kind of a lifetime that is no length of time or too long.
	ErrLifetime = errors.New("a code lives for 1 ms to 24 hours")
)

// Unavailable is the error of a call that has no answer: it says what was being done, and
// is both ErrUnavailable and its cause.
func Unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, cause)
}

// CheckLifetime is the check that every book makes first.
func CheckLifetime(lifetime int64) error {
	if lifetime < 1 || lifetime > MaxLifetime {
		return ErrLifetime
	}
	return nil
}

// A Result is what a code turned out to be.
type Result int8

// The results. A Book knows the first three.
const (
	Expired   Result = iota // there is no code on record that has not expired
	Incorrect               // there is, and this is another
	Correct                 // this was one, and all of the mailbox are forgotten
	Spent                   // the guesses are spent; nobody has looked at the code
)

// String is the result's name, such as "correct".
func (r Result) String() string {
	names := [...]string{"expired", "incorrect", "correct", "spent"}
	if r < 0 || int(r) >= len(names) {
		return "result " + strconv.Itoa(int(r))
	}
	return names[r]
}
