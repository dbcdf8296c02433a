package mailer

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// connections are the kept connections to one relay: never more than max at
// once, dialing ones included, and mostPerDomain for one recipient domain. The
// last put back is the first taken, so that those not needed grow old and are
// closed; whoever must wait is served in order of arrival, those passed over
// whose domain has its share. But once the first in line has waited for longMS
// the line is longer than can be served soon, by slow recipients most likely,
// and whoever came last is served first: then those who come after a crowd do
// not wait for all of it. The crowd is served when nobody newer waits.
type connections struct {
	max, mostPerDomain, mostWaiting int
	idleMS, longMS                  int64
	now                             func() int64
	gone                            <-chan struct{} // closed when everybody must leave
	retire                          func(*smtpConn) // takes leave in the background, then calls drop

	mu                sync.Mutex
	idle              []*smtpConn    // the longest unused first
	open              int            // places taken: idle, in use, being dialed, taking leave
	waiting           *list.List     // of waiter
	inUse, waitingFor map[string]int // by domain; those with none are not kept
	reaper            *time.Timer
	closing           bool
}

// waiter is a send in the queue.
type waiter struct {
	domain string
	since  int64
	handed chan *smtpConn // has room for one
}

// take returns a kept connection, or nil with the right to dial one. Either
// must be given back: the domain's share with release, then the connection
// with put or the place with drop. It waits until ctx, the mail's last call or
// the end of everything.
func (k *connections) take(p patience, domain string) (*smtpConn, error) {
	k.mu.Lock()
	if k.available(domain) {
		c := k.hand(domain)
		k.mu.Unlock()
		return c, nil
	}
	if k.waiting.Len() >= k.mostWaiting || k.waitingFor[domain] >= max(1, k.mostWaiting/2) {
		k.mu.Unlock()
		return nil, &BusyError{RetryAfter: time.Second}
	}
	w := waiter{domain: domain, since: k.now(), handed: make(chan *smtpConn, 1)}
	place := k.waiting.PushBack(w)
	add(k.waitingFor, domain, 1)
	k.mu.Unlock()
	return k.await(p, w, place)
}

// available says whether there is a connection, or a place for one, that this
// domain may have.
func (k *connections) available(domain string) bool {
	return (len(k.idle) > 0 || k.open < k.max) && k.inUse[domain] < k.mostPerDomain
}

// hand gives what is available.
func (k *connections) hand(domain string) *smtpConn {
	add(k.inUse, domain, 1)
	n := len(k.idle)
	if n == 0 {
		k.open++
		return nil
	}
	c := k.idle[n-1]
	k.idle = k.idle[:n-1]
	return c
}

// serve hands what is available to those who wait. It is called whenever that
// became more, so that nobody waits for what is there.
func (k *connections) serve() {
	place, follow := k.waiting.Front(), (*list.Element).Next
	if place != nil && k.now()-place.Value.(waiter).since >= k.longMS {
		place, follow = k.waiting.Back(), (*list.Element).Prev
	}
	for place != nil && (len(k.idle) > 0 || k.open < k.max) {
		next := follow(place)
		if w := place.Value.(waiter); k.available(w.domain) {
			k.leave(place)
			w.handed <- k.hand(w.domain)
		}
		place = next
	}
}

// leave takes a waiter out of the queue.
func (k *connections) leave(place *list.Element) {
	add(k.waitingFor, k.waiting.Remove(place).(waiter).domain, -1)
}

func add(counts map[string]int, domain string, n int) {
	if counts[domain] += n; counts[domain] == 0 {
		delete(counts, domain)
	}
}

func (k *connections) await(p patience, w waiter, place *list.Element) (*smtpConn, error) {
	timer := time.NewTimer(time.Until(p.lastCall()))
	defer timer.Stop()
	var err error
	select {
	case c := <-w.handed:
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
	case c := <-w.handed: // it came at the same moment: somebody else's now
		k.mu.Unlock()
		k.pass(w.domain, c)
	default:
		k.leave(place)
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

// release gives back one connection of a domain's share.
func (k *connections) release(domain string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	add(k.inUse, domain, -1)
	k.serve()
}

// pass gives back what take returned, unused.
func (k *connections) pass(domain string, c *smtpConn) {
	k.release(domain)
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
	defer k.mu.Unlock()
	if k.closing && k.waiting.Len() == 0 {
		k.retire(c)
		return
	}
	none := len(k.idle) == 0
	k.idle = append(k.idle, c)
	k.serve()
	if none && len(k.idle) > 0 {
		k.reapAfter(k.idleMS)
	}
}

// drop gives back the place of a connection that is no more, or never was.
func (k *connections) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open--
	k.serve()
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
