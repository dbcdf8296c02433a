package relay

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// Pace bounds how many emails leave a second, at even distances and in order of arrival.
// Up to Queue may wait. An email that finds the queue full, or whose wait would exceed its
// deadline, is refused as Busy at once.
type Pace struct {
	PerSecond float64 // 0: no limit
	Queue     int
}

// SlowestPace is the least PerSecond beside 0.
const SlowestPace = 1e-6

// pacer applies a Pace.
type pacer struct {
	limiter  *rate.Limiter
	interval time.Duration
	queue    chan struct{} // holds one for each email that waits
}

func newPacer(p Pace) *pacer {
	return &pacer{
		limiter:  rate.NewLimiter(rate.Limit(p.PerSecond), 1),
		interval: time.Duration(float64(time.Second) / p.PerSecond),
		queue:    make(chan struct{}, p.Queue),
	}
}

// wait returns when this email may leave.
func (p *pacer) wait(b budget) *Error {
	if p.limiter.Allow() {
		return nil
	}
	select {
	case p.queue <- struct{}{}:
		defer func() { <-p.queue }()
	default:
		return busy(p.interval)
	}
	ctx, cancel := context.WithDeadline(b.ctx, b.lastCall)
	defer cancel()
	switch err := p.limiter.Wait(ctx); {
	case err == nil:
		return nil
	case b.ctx.Err() == context.Canceled:
		return &Error{Outcome: Unavailable, Err: b.ctx.Err()}
	}
	return busy(p.interval)
}
