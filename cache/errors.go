package cache

import (
	"errors"
	"fmt"
)

// ErrUnavailable is the kind of every error of this package: there is no answer. After a
// failed Update either the old or the new value is kept.
var ErrUnavailable = errors.New("the store is unavailable")

// The kinds of ErrUnavailable that an operator can act on.
var (
	// ErrFull is a disk, or the memory of a store in memory alone, without room. Values
	// can still be read and removed, and writes succeed again once there is room.
	ErrFull = fmt.Errorf("%w: no room is left", ErrUnavailable)
	// ErrInUse is a directory that another process has open.
	ErrInUse = fmt.Errorf("%w: another process uses this data directory", ErrUnavailable)
	// ErrCorrupt is a file that does not hold what was written to it.
	ErrCorrupt = fmt.Errorf("%w: the data is corrupt", ErrUnavailable)
	// ErrClosed is a call after Close.
	ErrClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)
)

// unavailable wraps the cause of a failed call.
func unavailable(cause error) error {
	if errors.Is(cause, ErrUnavailable) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
