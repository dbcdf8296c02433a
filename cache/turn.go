package cache

import "context"

// A turn is a lock that is waited for only as long as the caller likes.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// lock waits for the turn as long as ctx lasts. Without an error it is the caller's.
func (t turn) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) Lock() { t <- struct{}{} }

// TryLock takes the turn if it is nobody's.
func (t turn) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) Unlock() { <-t }
