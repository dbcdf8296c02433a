package throttle

import (
	"context"
	"errors"
)

// A Limiter keeps the histories of mailboxes and admits sends by one policy. Its
// methods may be called from any number of goroutines.
//
// The mailbox is any text that stands for one mailbox, 1 to [MaxMailbox] bytes;
// two texts are two mailboxes. Anything else is [ErrMailbox].
//
// An error means that there is no answer, and never counts as a yes. It is
// [ErrUnavailable] when the history could not be read or written, or the context
// ended, and then also wraps the cause. A Take that failed may or may not have been
// recorded: taking again with the same ID is safe, and Release gives back what was.
type Limiter interface {
	// Take admits one send and records it under id, or says no and changes
	// nothing. Taken again with an id that is on record, it admits again without a
	// second charge. An id that is not Valid is ErrID. It may block for as long as
	// ctx allows.
	Take(ctx context.Context, mailbox string, id ID) (Verdict, error)

	// Peek answers what Take would, and records nothing.
	Peek(ctx context.Context, mailbox string) (Verdict, error)

	// Release gives the admission back, because its mail certainly never left. It
	// reports whether there was one to give back.
	Release(ctx context.Context, mailbox string, id ID) (released bool, err error)

	// Reset forgets the mailbox, and reports how many sends inside the longest
	// window it forgot.
	Reset(ctx context.Context, mailbox string) (cleared int, err error)

	// History returns the sends inside the longest window, oldest first; those of one
	// millisecond in any order.
	History(ctx context.Context, mailbox string) (History, error)
}

// MaxMailbox is the longest text that stands for a mailbox, in bytes.
const MaxMailbox = 1024

var (
	// ErrUnavailable is the kind of every failure to read or write a history.
	ErrUnavailable = errors.New("the history is unavailable")
	// ErrMailbox is the kind of a mailbox that is empty or too long.
	ErrMailbox = errors.New("a mailbox is 1 to 1024 bytes long")
	// ErrID is the kind of a reservation that NewID or ParseID did not make.
	ErrID = errID
)

// CheckMailbox is the check that every limiter makes first.
func CheckMailbox(mailbox string) error {
	if mailbox == "" || len(mailbox) > MaxMailbox {
		return ErrMailbox
	}
	return nil
}
