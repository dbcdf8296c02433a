package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pace bounds how many mails leave a second, at even distances and in order of arrival.
// Up to Queue may wait. A mail that finds the queue full, or whose wait would exceed its
// deadline, is refused as Busy at once.
type Pace struct {
	PerSecond float64 // 0: no limit
	Queue     int
}

// SlowestPace is the least PerSecond beside 0.
const SlowestPace = 1e-6

func (p Pace) check() error {
	if p.PerSecond != 0 && !(p.PerSecond >= SlowestPace && p.PerSecond <= 1e6) {
		return errors.New("relay settings: the pace must be 0 or between a millionth and a million a second")
	}
	return nil
}

// pacer is a Pace at work.
type pacer struct {
	limiter *rate.Limiter
	most    int
	now     func() int64 // milliseconds
	gone    <-chan struct{}

	mu      sync.Mutex
	waiting int
}

func newPacer(p Pace, now func() int64, gone <-chan struct{}) *pacer {
	return &pacer{limiter: rate.NewLimiter(rate.Limit(p.PerSecond), 1), most: p.Queue, now: now, gone: gone}
}

// wait returns when this mail may leave. The slot of one that gives up while waiting is not
// used by another, since those behind it have their times already.
func (p *pacer) wait(b budget) *Error {
	delay, failure := p.reserve(time.Until(b.lastCall))
	if failure != nil || delay == 0 {
		return failure
	}
	defer p.left()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.ctx.Done():
		return &Error{Outcome: Unavailable, Err: context.Cause(b.ctx)}
	case <-p.gone:
		return &Error{Outcome: Unavailable, Err: ErrClosed}
	}
}

// reserve says how long this mail must wait. A mail that must, and may, is in the queue
// until left.
func (p *pacer) reserve(patience time.Duration) (time.Duration, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.UnixMilli(p.now())
	reservation := p.limiter.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	switch {
	case delay == 0:
		return 0, nil
	case p.waiting >= p.most, delay > patience:
		reservation.CancelAt(now)
		return 0, busy(max(delay-patience, p.interval()))
	}
	p.waiting++
	return delay, nil
}

func (p *pacer) left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

func (p *pacer) interval() time.Duration {
	return time.Duration(float64(time.Second) / float64(p.limiter.Limit()))
}
