package throttle

import (
	"context"
	"errors"
	"fmt"
)

// Limiter counts sends by key and admits them within a limit. A key is any text of 1 to 1024 bytes
// that identifies what is counted: a mailbox, a network address, a caller. Methods may be called
// from any number of goroutines.
//
// An error means that there is no answer, and never counts as an admission. It is
// [ErrUnavailable] when the records could not be read or written in time. A Take that
// failed may have been recorded.
type Limiter interface {
	// Take admits one send and records it under id, or refuses it and changes nothing.
	// A [Policy] does not charge an id again that is on record; a counter keeps no ids and
	// charges each Take.
	Take(ctx context.Context, key string, id ID) (Verdict, error)

	// Peek reports what Take would answer, and records nothing.
	Peek(ctx context.Context, key string) (Verdict, error)

	// Release refunds an admission whose send certainly never happened, and reports whether
	// there was one to refund. a.At is the At of the verdict that admitted it. A Policy finds
	// the admission by id, so Release may be repeated. A counter takes one off the count at
	// a.At: call Release once for each admission, and do not repeat it after an error.
	Release(ctx context.Context, key string, a Admission) (released bool, err error)

	// Reset forgets the key and reports how many sends it forgot.
	Reset(ctx context.Context, key string) (cleared int, err error)

	// Record adds admissions that were made elsewhere, each at its own time, even beyond the
	// limit. A Policy ignores ids that are on record; a counter counts each again.
	Record(ctx context.Context, key string, all ...Admission) error
}

// Historian is a Limiter that keeps every send, as a [Policy] does. With a counter, History and
// Each return errors.ErrUnsupported.
type Historian interface {
	Limiter

	// History returns the sends of a key inside the longest window, oldest first.
	History(ctx context.Context, key string) (History, error)

	// Each visits all histories that have a send inside the longest window, in any order
	// and without their keys, until visit returns false.
	Each(ctx context.Context, visit func(History) bool) error
}

// maxKey is the longest key, in bytes.
const maxKey = 1024

var (
	// ErrUnavailable is the kind of every failure to read or write records.
	ErrUnavailable = errors.New("the records are unavailable")
	// ErrUnchanged is also in an ErrUnavailable if certainly nothing was recorded, as when
	// there was no connection.
	ErrUnchanged = errors.New("nothing was recorded")
	// ErrKey is the kind of a key that is empty or too long.
	ErrKey = errors.New("a key is 1 to 1024 bytes long")
	// ErrID is the kind of an id that NewID or ParseID did not make.
	ErrID = errors.New("an id is eight characters of A-Z, a-z, 0-9, - and _")
)

// CheckKey returns ErrKey for a key that no limiter accepts.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return ErrKey
	}
	return nil
}

// Unavailable wraps the cause of a failed call as ErrUnavailable, and says what was being done.
func Unavailable(doing string, cause error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, cause)
}
