package throttle

import "errors"

// ErrUnchanged is the kind of an error that is proof: the call has changed nothing on record.
// An error that is not of this kind proves nothing.
var ErrUnchanged = errors.New("nothing on record was changed")

// Unchanged is the error of a call that certainly changed nothing: err, and ErrUnchanged.
func Unchanged(err error) error { return unchanged{err} }

type unchanged struct{ error }

func (e unchanged) Unwrap() error        { return e.error }
func (e unchanged) Is(target error) bool { return target == ErrUnchanged }

// Unproven is err, and not ErrUnchanged any more: something else was done in the same call
// of which it knows nothing.
func Unproven(err error) error { return unproven{err} }

// It has no Unwrap, by which the kind would be found.
type unproven struct{ error }

func (e unproven) Is(target error) bool {
	return target != ErrUnchanged && errors.Is(e.error, target)
}

func (e unproven) As(target any) bool { return errors.As(e.error, target) }
