package client

import (
	"errors"
	"net/http"
)

// An Unsettled is the error where the mail may have been sent, and this call could not find
// out: an answer was lost or cannot be read, or the first request under the key is still at
// work. The same [Send] under Key finds out, for a day, and makes no second mail; under a
// new key it may. It stays open until that is a yes, a [Wait], or a [Problem] of kind
// [RecipientRejected] or [DeliveryUnknown].
type Unsettled struct {
	Key string // the send's, given or made
	// Err is how the last attempt ended, for errors.Is and errors.As. What it says of what
	// was done is true of that attempt alone.
	Err error
}

// Error says how the last attempt ended. The key is not in it.
func (e *Unsettled) Error() string { return "the mail may have been sent: " + e.Err.Error() }

// Unwrap gives how the last attempt ended.
func (e *Unsettled) Unwrap() error { return e.Err }

// inDoubt reports whether an attempt that ended so may have done what was asked for, or part
// of it.
func (q question) inDoubt(err error) bool {
	if silence, ok := errors.AsType[*NoAnswer](err); ok {
		return !silence.NotAsked
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		if p.Kind != "" && p.Status == http.StatusServiceUnavailable {
			return p.Kind == StoreUnavailable && !q.mail // of a send it says that no mail was sent, as any other does
		}
		return p.Kind == KeyInFlight || p.Status >= 500
	}
	return errors.Is(err, ErrAnswer)
}

// settles reports whether an answer says what became of all attempts under its key. Any
// other no is of its own request alone. The limits are asked only where no mail of the key
// has left, as far as it can be seen.
func settles(err error) bool {
	if wait, ok := errors.AsType[*Wait](err); ok {
		return !wait.Degraded
	}
	p, ok := errors.AsType[*Problem](err)
	return ok && (p.Kind == RecipientRejected || p.Kind == DeliveryUnknown)
}

// ended is the error of a call whose last attempt ended so, where any of its attempts may
// have done what was asked for.
func (q question) ended(err error) error {
	if silence, ok := errors.AsType[*NoAnswer](err); ok {
		silence.NotAsked = false
	}
	if !q.mail || settles(err) {
		return err
	}
	return &Unsettled{Key: q.key, Err: err}
}
