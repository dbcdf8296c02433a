package mailer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// connections are the kept connections to one relay: never more than max at
// once, dialing ones included, nor for a while more than it took when it sent one
// away, and mostPerDomain for one recipient domain. Those
// whose recipients are not known to answer promptly hold mostStrangers at most.
// The last put back is the first taken, so that those not needed grow old and
// are closed.
//
// Whoever must wait stands in a line that is fair between callers. A caller's
// mails are served in order of arrival, those passed over whose domain has its
// share. But once the first of them has waited for longMS its lane is longer
// than can be served soon, by slow recipients most likely, and whoever came last
// is served first: then those who come after a crowd do not wait for all of it.
// The crowd is served when nobody newer waits.
type connections struct {
	max, mostPerDomain, mostStrangers int
	idleMS, longMS, fullMS            int64
	now                               func() int64
	gone                              <-chan struct{} // closed when everybody must leave
	retire                            func(*smtpConn) // takes leave in the background, then calls drop

	mu        sync.Mutex
	idle      []*smtpConn    // the longest unused first
	open      int            // places taken: idle, in use, being dialed, taking leave
	line      *line          // who waits
	inUse     map[string]int // by domain; those with none are not kept
	strangers int            // of those in use, handed out for a domain that was not known
	known     *acquaintances
	reaper    *time.Timer
	closing   bool
	full      int   // as many as the relay takes, it seems
	fullUntil int64 // and for how long this is believed
}

// A share is what a mail holds while it uses a connection or a place for one.
type share struct {
	claim
	stranger bool
}

// take returns a kept connection, or nil with the right to dial one. Either
// must be given back: the share with release, then the connection with put or
// the place with drop. It waits until ctx, the time for leaving the line or the end
// of everything.
func (k *connections) take(p patience, c claim) (*smtpConn, share, error) {
	k.mu.Lock()
	if k.available(c.domain) {
		conn, s := k.hand(c)
		k.mu.Unlock()
		return conn, s, nil
	}
	w := k.line.join(c, k.now(), k.turned)
	k.mu.Unlock()
	if w == nil {
		return nil, share{}, &BusyError{RetryAfter: time.Second}
	}
	err := k.await(p, w)
	return w.conn, w.share, err
}

// available says whether there is a connection, or a place for one, that this
// domain may have.
func (k *connections) available(domain string) bool {
	return (len(k.idle) > 0 || k.open < k.most()) && k.inUse[domain] < k.mostPerDomain &&
		(k.strangers < k.mostStrangers || k.known.prompt(domain))
}

// most is how many there may be now.
func (k *connections) most() int {
	if k.now() < k.fullUntil {
		return min(k.max, k.full)
	}
	return k.max
}

// crowded notes that the relay would not have one more, and says whether there are
// others to wait for. If so, no more is asked for, but for fullMS only: the others may
// be on their way to being sent away, too, all by one moment's trouble, and then one
// connection is left.
func (k *connections) crowded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open < 2 {
		return false
	}
	k.full = max(1, min(k.open, k.most())-1)
	k.fullUntil = k.now() + k.fullMS
	return true
}

// turned says whether a lane is served from its end.
func (k *connections) turned(first *waiter) bool { return k.now()-first.since >= k.longMS }

// hand gives what is available.
func (k *connections) hand(c claim) (*smtpConn, share) {
	s := share{claim: c, stranger: !k.known.prompt(c.domain)}
	add(k.inUse, c.domain, 1)
	k.line.took(c.caller)
	if s.stranger {
		k.strangers++
	}
	n := len(k.idle)
	if n == 0 {
		k.open++
		return nil, s
	}
	conn := k.idle[n-1]
	k.idle = k.idle[:n-1]
	return conn, s
}

// serve hands what is available to those who wait. It is called whenever that
// became more, so that nobody waits for what is there.
func (k *connections) serve() {
	for len(k.idle) > 0 || k.open < k.most() {
		w := k.line.next(k.available, k.turned)
		if w == nil {
			return
		}
		w.conn, w.share = k.hand(w.claim)
		w.called <- true
	}
}

func (k *connections) await(p patience, w *waiter) error {
	timer := time.NewTimer(time.Until(p.leavesLine()))
	defer timer.Stop()
	var err error
	select {
	case served := <-w.called:
		if served {
			return nil
		}
		return &BusyError{RetryAfter: time.Second}
	case <-timer.C:
		err = &BusyError{RetryAfter: time.Second}
	case <-p.ctx.Done():
		err = busyOrGone(p.ctx)
	case <-k.gone:
		err = ErrClosed
	}
	k.mu.Lock()
	select {
	case served := <-w.called:
		k.mu.Unlock()
		if served { // it came at the same moment: somebody else's now
			k.pass(w.share, w.conn)
			w.conn = nil
		}
	default:
		k.line.leave(w)
		k.mu.Unlock()
	}
	return err
}

// busyOrGone is why a wait for a connection ended with its context: the time
// was too short for the crowd, or the caller has gone.
func busyOrGone(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return &BusyError{RetryAfter: time.Second}
	}
	return ctx.Err()
}

// release gives back a share.
func (k *connections) release(s share) {
	k.mu.Lock()
	defer k.mu.Unlock()
	add(k.inUse, s.domain, -1)
	k.line.gave(s.caller)
	if s.stranger {
		k.strangers--
	}
	k.serve()
}

// learn notes how promptly a recipient was answered for.
func (k *connections) learn(domain string, promptly bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.note(domain, promptly, k.now())
}

// pass gives back what take returned, unused.
func (k *connections) pass(s share, c *smtpConn) {
	k.release(s)
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
	if k.closing && k.line.count == 0 {
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
	return k.open, len(k.idle), k.line.count
}
