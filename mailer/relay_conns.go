package mailer

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// connections are the kept connections to one relay: never more than max at
// once, dialing ones included. The last put back is the first taken, so that
// those not needed grow old and are closed; whoever must wait is served in
// order of arrival.
type connections struct {
	max, mostWaiting int
	idleMS           int64
	now              func() int64
	gone             <-chan struct{} // closed when everybody must leave
	retire           func(*smtpConn) // takes leave in the background, then calls drop

	mu      sync.Mutex
	idle    []*smtpConn // the longest unused first
	open    int         // places taken: idle, in use, being dialed, taking leave
	waiting *list.List  // of chan *smtpConn, each with room for one
	reaper  *time.Timer
	closing bool
}

// take returns a kept connection, or nil with the right to dial one. Either
// must be given back with put or drop. It waits until ctx, the moment given or
// the end of everything.
func (k *connections) take(p patience) (*smtpConn, error) {
	k.mu.Lock()
	if n := len(k.idle); n > 0 {
		c := k.idle[n-1]
		k.idle = k.idle[:n-1]
		k.mu.Unlock()
		return c, nil
	}
	if k.open < k.max {
		k.open++
		k.mu.Unlock()
		return nil, nil
	}
	if k.waiting.Len() >= k.mostWaiting {
		k.mu.Unlock()
		return nil, &BusyError{RetryAfter: time.Second}
	}
	handed := make(chan *smtpConn, 1)
	place := k.waiting.PushBack(handed)
	k.mu.Unlock()
	return k.await(p, handed, place)
}

func (k *connections) await(p patience, handed chan *smtpConn, place *list.Element) (*smtpConn, error) {
	timer := time.NewTimer(time.Until(p.until))
	defer timer.Stop()
	var err error
	select {
	case c := <-handed:
		return c, nil
	case <-timer.C:
		err = &BusyError{RetryAfter: time.Second}
	case <-p.ctx.Done():
		err = busyOrGone(p.ctx)
	case <-k.gone:
		err = ErrClosed
	}
	k.mu.Lock()
	select {
	case c := <-handed: // it came at the same moment: somebody else's now
		k.mu.Unlock()
		k.pass(c)
	default:
		k.waiting.Remove(place)
		k.mu.Unlock()
	}
	return nil, err
}

// busyOrGone is why a wait for a connection ended with its context: the time
// was too short for the crowd, or the caller has gone.
func busyOrGone(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return &BusyError{RetryAfter: time.Second}
	}
	return ctx.Err()
}

func (k *connections) pass(c *smtpConn) {
	if c == nil {
		k.drop()
		return
	}
	k.put(c)
}

// put gives a sound connection back.
func (k *connections) put(c *smtpConn) {
	c.idleSince = k.now()
	k.mu.Lock()
	if next := k.waiting.Front(); next != nil {
		k.waiting.Remove(next).(chan *smtpConn) <- c
		k.mu.Unlock()
		return
	}
	if k.closing {
		k.retire(c)
		k.mu.Unlock()
		return
	}
	k.idle = append(k.idle, c)
	if len(k.idle) == 1 {
		k.reapAfter(k.idleMS)
	}
	k.mu.Unlock()
}

// drop gives back the place of a connection that is no more, or never was.
func (k *connections) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if next := k.waiting.Front(); next != nil {
		k.waiting.Remove(next).(chan *smtpConn) <- nil
		return
	}
	k.open--
}

// reapAfter sets the one timer there is; it runs while anything is idle.
func (k *connections) reapAfter(ms int64) {
	after := time.Duration(max(ms, 1)) * time.Millisecond
	if k.reaper == nil {
		k.reaper = time.AfterFunc(after, k.reap)
		return
	}
	k.reaper.Reset(after)
}

// reap takes leave of the connections that were idle for too long.
func (k *connections) reap() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, old := k.now(), 0
	for old < len(k.idle) && now-k.idle[old].idleSince >= k.idleMS {
		// Begun under the lock: after close nothing more begins.
		k.retire(k.idle[old])
		old++
	}
	k.idle = slices.Delete(k.idle, 0, old)
	if len(k.idle) > 0 {
		k.reapAfter(k.idle[0].idleSince + k.idleMS - now)
	}
}

// close takes leave of what is idle; what is in use follows when it is put
// back.
func (k *connections) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closing = true
	for _, c := range k.idle {
		k.retire(c)
	}
	k.idle = nil
	if k.reaper != nil {
		k.reaper.Stop()
	}
}

// counts are for Stats.
func (k *connections) counts() (open, idle, waiting int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open, len(k.idle), k.waiting.Len()
}
