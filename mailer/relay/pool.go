package relay

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool is the connections to one relay: at most max at once, of which one recipient domain
// gets perDomain, and a bounded queue of sends that wait for one, in order of arrival. The
// last connection put back is the first taken, so that those not needed grow old and are
// closed.
type pool struct {
	max, perDomain, maxWaiting int
	idleTimeout, cooldown      time.Duration
	now                        func() int64    // milliseconds
	gone                       <-chan struct{} // closed when every wait must end
	quit                       func(*conn)     // says QUIT, at most for a second

	mu      sync.Mutex
	idle    []*conn        // the longest unused first
	open    int            // slots taken: idle, in use, being dialed, being closed
	inUse   map[string]int // slots by recipient domain
	queue   []*waiter
	closing bool
	closers sync.WaitGroup
	// The relay refused one connection more than this; it is believed for a while.
	refusedAt    int
	refusedUntil int64
}

// waiter is a send that waits. Its channel gets a kept connection, or nil for a slot to dial
// in.
type waiter struct {
	domain string
	slot   chan *conn
}

// take returns a kept connection, or nil with the right to dial one, for release to give
// back. It waits until then at most.
func (p *pool) take(ctx context.Context, until time.Time, domain string) (*conn, *Error) {
	p.mu.Lock()
	if p.free() && p.inUse[domain] < p.perDomain {
		defer p.mu.Unlock()
		return p.hand(domain), nil
	}
	if len(p.queue) >= p.maxWaiting || p.waitingFor(domain) >= max(1, p.maxWaiting/2) {
		p.mu.Unlock()
		return nil, busy(time.Second)
	}
	w := &waiter{domain: domain, slot: make(chan *conn, 1)}
	p.queue = append(p.queue, w)
	p.mu.Unlock()

	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	var failure *Error
	select {
	case c := <-w.slot:
		return c, nil
	case <-timer.C:
		failure = busy(time.Second)
	case <-ctx.Done():
		failure = busy(time.Second)
		if ctx.Err() != context.DeadlineExceeded {
			failure = &Error{Outcome: Unavailable, Step: StepConnect, Err: ctx.Err()}
		}
	case <-p.gone:
		failure = &Error{Outcome: Unavailable, Step: StepConnect, Err: ErrClosed}
	}
	p.leave(w)
	return nil, failure
}

// leave takes a waiter out of the queue, or gives back the slot that came at that moment.
func (p *pool) leave(w *waiter) {
	p.mu.Lock()
	before := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(other *waiter) bool { return other == w })
	served := len(p.queue) == before
	p.mu.Unlock()
	if served {
		p.release(<-w.slot, w.domain)
	}
}

// free reports whether there is a kept connection or a slot for one.
func (p *pool) free() bool { return len(p.idle) > 0 || p.open < p.limit() }

func (p *pool) limit() int {
	if p.now() < p.refusedUntil {
		return min(p.max, p.refusedAt)
	}
	return p.max
}

func (p *pool) waitingFor(domain string) (n int) {
	for _, w := range p.queue {
		if w.domain == domain {
			n++
		}
	}
	return n
}

// hand gives what is free.
func (p *pool) hand(domain string) *conn {
	p.inUse[domain]++
	n := len(p.idle)
	if n == 0 {
		p.open++
		return nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	c.idle.Stop()
	return c
}

// serve hands what is free to those who wait. It is called whenever that became more.
func (p *pool) serve() {
	for i := 0; i < len(p.queue) && p.free(); {
		w := p.queue[i]
		if p.inUse[w.domain] >= p.perDomain {
			i++
			continue
		}
		p.queue = slices.Delete(p.queue, i, i+1)
		w.slot <- p.hand(w.domain)
	}
}

// release gives back what take returned, or the connection that was dialed in its place.
// A sound one is kept; with nil, or one that is broken, only the slot is free again.
func (p *pool) release(c *conn, domain string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse[domain]--; p.inUse[domain] == 0 {
		delete(p.inUse, domain)
	}
	switch {
	case c == nil:
		p.open--
	case c.broken:
		c.close()
		p.open--
	case p.closing && len(p.queue) == 0, c.most > 0 && c.mails >= c.most:
		p.retire(c)
	default:
		c.kept = true
		c.idle = time.AfterFunc(p.idleTimeout, func() { p.expire(c) })
		p.idle = append(p.idle, c)
	}
	p.serve()
}

// expire closes a connection that was idle for too long, unless it was taken meanwhile.
func (p *pool) expire(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.retire(c)
	}
}

// retire ends a connection in the background. Its slot is free only when it is closed, so
// that the relay never sees more than max.
func (p *pool) retire(c *conn) {
	p.closers.Go(func() {
		p.quit(c)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
		p.serve()
	})
}

// crowded notes that the relay would not have one more connection, and reports whether there
// are others to wait for. The limit is believed for the cooldown only: the others may be on
// their way to being refused, too, by trouble of a moment.
func (p *pool) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open < 2 {
		return false
	}
	p.refusedAt = max(1, min(p.open, p.limit())-1)
	p.refusedUntil = p.now() + p.cooldown.Milliseconds()
	return true
}

// close ends what is idle and waits until all is closed. What is in use follows when it is
// released, so the caller waits for that first.
func (p *pool) close() {
	p.mu.Lock()
	p.closing = true
	for _, c := range p.idle {
		c.idle.Stop()
		p.retire(c)
	}
	p.idle = nil
	p.mu.Unlock()
	p.closers.Wait()
}

func (p *pool) counts() (open, idle, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, len(p.idle), len(p.queue)
}
