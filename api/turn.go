package api

import (
	"context"
	"time"
)

// turn holds a send back for so many milliseconds. One whose time is up before its turn
// comes does not wait for nothing, and nor does one whose turn comes too late for a
// Shutdown: another server can take it on at once.
func (s *Server) turn(ctx context.Context, delay int64) error {
	if delay <= 0 {
		return nil
	}
	wait := time.Duration(delay) * time.Millisecond
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) <= wait {
		return tooLate(delay)
	}
	comes := time.Now().Add(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for open := s.open.Done(); ; open = nil {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return tooLate(delay)
		case <-open:
			if last := s.lastTurn.Load(); last != nil && !comes.Before(*last) {
				return tooLate(delay)
			}
		}
	}
}

func tooLate(delay int64) error {
	return notSent{&problem{kind: busy, retryAfter: max(delay, busyRetry),
		detail: "The turn of this send does not come in time. Nothing was sent and nothing charged."}}
}
