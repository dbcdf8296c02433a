package throttle

import (
	"context"
	"errors"
	"fmt"
)

// A Limiter admits sends within a limit, for each key apart. Its methods may be called
// from any number of goroutines.
//
// A key is any text that stands for what is counted, such as a mailbox, an address of
// the network or a caller: 1 to [MaxKey] bytes, and two texts are two keys. Anything
// else is [ErrKey].
//
// An error means that there is no answer, and never counts as a yes. It is
// [ErrUnavailable] when what is on record could not be read or written, or the context
// ended, and then also wraps the cause. A Take that failed may or may not have been
// recorded: taking again with the same ID is safe, and Release gives back what was. Where
// the error is [ErrUnchanged] as well it certainly was not, and there is nothing to give back.
type Limiter interface {
	// Take admits one send and records it under id, or says no and changes
	// nothing. Taken again with an id that is on record, it admits again without a
	// second charge. An id that is not Valid is ErrID. It may block for as long as
	// ctx allows; on a disk of this machine longer, once the drive was asked and hangs.
	Take(ctx context.Context, key string, id ID) (Verdict, error)

	// Peek answers what Take would, and records nothing.
	Peek(ctx context.Context, key string) (Verdict, error)

	// Release gives the admission back, because its mail certainly never left. It
	// reports whether there was one to give back.
	Release(ctx context.Context, key string, id ID) (released bool, err error)

	// Reset forgets the key, and reports how many sends that still counted it forgot. What
	// a meter of another form has counted under the key stays, and counts again for one of
	// that form until it expires.
	Reset(ctx context.Context, key string) (cleared int, err error)
}

// A Historian is a Limiter that keeps every send, as those do that admit by a Policy.
type Historian interface {
	Limiter

	// History returns the sends inside the longest window, oldest first; those of one
	// millisecond in any order.
	History(ctx context.Context, key string) (History, error)
}

// MaxKey is the longest key, in bytes.
const MaxKey = 1024

var (
	// ErrUnavailable is the kind of every failure to read or write what is on record.
	ErrUnavailable = errors.New("the history is unavailable")
	// ErrKey is the kind of a key that is empty or too long. It is ErrUnchanged as well.
	ErrKey = Unchanged(errors.New("a key is 1 to 1024 bytes long"))
	// ErrID is the kind of a reservation that NewID or ParseID did not make. It is
	// ErrUnchanged as well.
	ErrID = Unchanged(errors.New("a reservation is eight characters of A-Z, a-z, 0-9, - and _, as NewID makes them"))
)

// CheckKey is the check that every limiter makes first.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return ErrKey
	}
	return nil
}

// CheckCall is what every call of a limiter checks first: its key, and that somebody still
// waits for the answer. The error says what was being done.
func CheckCall(ctx context.Context, doing, key string) error {
	if err := CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return Unchanged(Unavailable(doing, err))
	}
	return nil
}

// WrongID is the error of a call whose id is not Valid: it says what was being done.
func WrongID(doing string) error { return fmt.Errorf("%s: %w", doing, ErrID) }

// Unavailable is the error of a call that has no answer: it says what was being done, and
// is both ErrUnavailable and its cause.
func Unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, cause)
}
