package relay

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool is the connections to one relay, at most Options.MaxConns at once. One recipient domain gets half of them.
// Sends wait for one in a bounded queue, in order of arrival. The last connection put back is the first taken, so
// those that are not needed grow old and are closed.
type pool struct {
	options Options

	mu    sync.Mutex
	idle  []*conn        // the longest unused first
	open  int            // slots taken: idle, in use, being dialed
	inUse map[string]int // slots by recipient domain
	queue []*waiter
	// The relay refused one connection more than this. It is assumed to for a while.
	lowerLimit int
	lowerUntil int64
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
	if p.free(domain) {
		defer p.mu.Unlock()
		return p.hand(domain), nil
	}
	waiting := 0
	for _, w := range p.queue {
		if w.domain == domain {
			waiting++
		}
	}
	if most := p.options.limits.Waiting; len(p.queue) >= most || waiting >= half(most) {
		p.mu.Unlock()
		return nil, busy(time.Second)
	}
	w := &waiter{domain: domain, slot: make(chan *conn, 1)}
	p.queue = append(p.queue, w)
	p.mu.Unlock()

	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case c := <-w.slot:
		return c, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	p.leave(w)
	if ctx.Err() == context.Canceled {
		return nil, &Error{Outcome: Unavailable, Step: StepConnect, Err: ctx.Err()}
	}
	return nil, busy(time.Second)
}

func half(n int) int { return max(1, n/2) }

// leave takes a waiter out of the queue, or returns the slot that it got at that moment.
func (p *pool) leave(w *waiter) {
	p.mu.Lock()
	i := slices.Index(p.queue, w)
	if i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 {
		p.release(<-w.slot, w.domain)
	}
}

// free reports whether there is a kept connection, or a slot for one, for this domain.
func (p *pool) free(domain string) bool {
	return (len(p.idle) > 0 || p.open < p.limit()) && p.inUse[domain] < half(p.options.MaxConns)
}

func (p *pool) limit() int {
	if p.options.limits.Now() < p.lowerUntil {
		return min(p.options.MaxConns, p.lowerLimit)
	}
	return p.options.MaxConns
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
	p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool {
		free := p.free(w.domain)
		if free {
			w.slot <- p.hand(w.domain)
		}
		return free
	})
}

// release returns the slot of take, or the connection that was dialed in it.
// A sound one is kept; with nil, or one that is broken, only the slot is free again.
func (p *pool) release(c *conn, domain string) {
	reusable := c != nil && c.state != broken && (c.most == 0 || c.mails < c.most)
	if c != nil && !reusable {
		c.quit() // before a relay is asked for another, and without the lock: it may not read this
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse[domain]--; p.inUse[domain] == 0 {
		delete(p.inUse, domain)
	}
	switch {
	case !reusable:
		p.open--
	case c.kept:
		c.idle.Reset(p.options.limits.Idle)
		p.idle = append(p.idle, c)
	default:
		c.kept, c.idle = true, time.AfterFunc(p.options.limits.Idle, func() { p.expire(c) })
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
		p.mu.Unlock()
		c.quit()
		p.mu.Lock()
		p.open--
		p.serve()
	}
}

// limitReached notes that the relay would not have one more connection, and reports whether there
// are others to wait for. The limit is believed for a cooldown only: the others may be about to be
// refused, too, by a passing failure.
func (p *pool) limitReached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open < 2 {
		return false
	}
	p.lowerLimit = max(1, min(p.open, p.limit())-1)
	p.lowerUntil = p.options.limits.Now() + p.options.limits.Breaker.Cooldown.Milliseconds()
	return true
}

// close ends the connections, none of which is in use.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.open, p.idle = 0, nil
	p.mu.Unlock()
	for _, c := range idle {
		c.idle.Stop()
		c.quit()
	}
}

func (p *pool) counts() (open, idle, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, len(p.idle), len(p.queue)
}
