package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrSilent is the kind of error of a call that Redis did not answer within Options.Timeout.
// It is no context.DeadlineExceeded: that is a caller whose own time was up.
var ErrSilent = errors.New("redis did not answer in time")

// A silence is such an error. It is all else that its cause is.
type silence struct {
	within time.Duration
	cause  error
}

func (s silence) Error() string {
	text := fmt.Sprintf("redis did not answer within %s", s.within)
	if cause := s.cause.Error(); cause != context.DeadlineExceeded.Error() {
		text += ": " + cause
	}
	return text
}

// It has no Unwrap, by which the end of the call's time would be taken for the caller's.
func (s silence) Is(target error) bool {
	return target == ErrSilent || target != context.DeadlineExceeded && errors.Is(s.cause, target)
}

func (s silence) As(target any) bool { return errors.As(s.cause, target) }

// told is the error of a call as whoever asked learns it.
func (s *Store) told(asker context.Context, err error) error {
	err = withoutWords(err)
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case !timedOut || errors.Is(err, errUnconfirmed):
	case !gaveUp(asker):
		return silence{s.timeout, err}
	case !errors.Is(err, asker.Err()):
		return fmt.Errorf("%w: %w", asker.Err(), err)
	}
	return err
}

// gaveUp reports whether it is whoever asked who waits no longer. A connection has the same
// deadline as its context, and can be told of it first: then the context is waited for, so that
// all who look at it later see the same.
func gaveUp(asker context.Context) bool {
	if end, bounded := asker.Deadline(); bounded && !time.Now().Before(end) {
		<-asker.Done()
	}
	return asker.Err() != nil
}
