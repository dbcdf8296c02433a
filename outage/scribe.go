package outage

import (
	"errors"
	"sync/atomic"
	"time"
)

const (
	// patience is how long an answer of the shared history waits until this node's disk has
	// noted it.
	patience = time.Second
	// mostUnderWay is how many such writes there are at once: a disk that hangs ends none.
	mostUnderWay = 64
)

// errHangs is why something is not noted yet, or was not tried.
var errHangs = errors.New("this node's disk takes too long")

// A scribe has this node's disk note what the shared history has decided. That is decided
// whether it is noted or not, so nobody waits long for a disk that hangs.
type scribe struct {
	patience time.Duration
	underWay chan struct{} // full of writes
	late     atomic.Int64  // those of them that nobody waits for any more
}

func newScribe() scribe {
	return scribe{patience: patience, underWay: make(chan struct{}, mostUnderWay)}
}

// write has something written. errHangs says that it takes too long: it goes on, and ends
// tells its end. Where ends is nil there was no room for one more, and it was not begun.
func (s *scribe) write(do func() error) (ends <-chan error, err error) {
	enough := time.NewTimer(s.wait())
	defer enough.Stop()
	if !s.begins(enough.C) {
		return nil, errHangs
	}
	done := make(chan error, 1)
	go func() {
		err := do()
		<-s.underWay
		done <- err
	}()
	select {
	case err := <-done:
		return nil, err
	case <-enough.C:
		return s.follow(done), errHangs
	}
}

// remove has something taken off, and reports whether it was there. errHangs says that nobody
// knows yet.
func (s *scribe) remove(do func() (was bool, err error)) (was bool, err error) {
	answer := make(chan bool, 1)
	_, err = s.write(func() error {
		was, err := do()
		answer <- was
		return err
	})
	if errors.Is(err, errHangs) {
		return false, err
	}
	return <-answer, err
}

// begins waits for room for one more.
func (s *scribe) begins(enough <-chan time.Time) bool {
	select {
	case s.underWay <- struct{}{}:
		return true
	default: // enough may have been before it began, and then there may be room all the same
	}
	select {
	case s.underWay <- struct{}{}:
		return true
	case <-enough:
		return false
	}
}

// wait is how long a write is waited for. While another is late the disk hangs, and all that
// is written takes as long.
func (s *scribe) wait() time.Duration {
	if s.hangs() {
		return 0
	}
	return s.patience
}

// follow waits for the end of a write that is late.
func (s *scribe) follow(done <-chan error) <-chan error {
	s.late.Add(1)
	ends := make(chan error, 1)
	go func() {
		err := <-done
		s.late.Add(-1)
		ends <- err
	}()
	return ends
}

// hangs reports whether the disk has not ended what it was handed a while ago.
func (s *scribe) hangs() bool { return s.late.Load() > 0 }
