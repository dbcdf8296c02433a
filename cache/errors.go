package cache

import "errors"

// What Open, Get and Update can fail with. Any failure means that there is no
// answer; after a failed Update either the old or the new value is kept, and the old one
// certainly is where the error is ErrUnchanged as well.
var (
	// ErrInUse: another process has the directory open.
	ErrInUse = errors.New("another process is using this data directory")
	// ErrFull: too little room is left to write safely: bytes or files on the disk, or
	// files that the process may open.
	ErrFull = errors.New("the disk is full")
	// ErrFiles is an ErrFull as well: it is files that run short, and not bytes.
	ErrFiles error = tooFewFiles{}
	// ErrDisk: the disk could not be read or written.
	ErrDisk = errors.New("the disk failed")
	// ErrCorrupt: what is on disk is not what was written.
	ErrCorrupt = errors.New("the data on disk is corrupt")
	// ErrTooLong: the key or the value is longer than the disk keeps, 32 and 256 KiB.
	ErrTooLong = errors.New("too long to keep")
	// ErrClosed: the map or its disk was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrUnchanged: an Update came to nothing before it began to write. It says so beside
	// the cause, and is never the only kind.
	ErrUnchanged = errors.New("nothing was written")
)

// tooFewFiles does not speak of a full disk: that may have room for all.
type tooFewFiles struct{}

func (tooFewFiles) Error() string        { return "too few files can be made or opened" }
func (tooFewFiles) Is(target error) bool { return target == ErrFull }

// unchanged is the error of a call that has written nothing.
type unchanged struct{ error }

func (e unchanged) Unwrap() error        { return e.error }
func (e unchanged) Is(target error) bool { return target == ErrUnchanged }
