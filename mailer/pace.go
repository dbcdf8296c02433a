package mailer

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Pace is a leaky bucket in front of the relays: mails leave one by one, at
// even distances, at most PerSecond of them: those of a caller in the order in
// which they came, and the callers in turn. Up to Queue may wait; a mail that
// finds the queue full, or that would wait beyond its deadline, is turned away
// at once with ErrBusy. One whose caller has fewer in the queue than another
// takes a place of that one's.
type Pace struct {
	PerSecond float64 // 0: no limit
	Queue     int     // 0: nobody waits
}

// SlowestPace is the least of a Pace that is one at all, in mails a second.
const SlowestPace = 1e-6

func (p Pace) check() error {
	if p.PerSecond < 0 || math.IsNaN(p.PerSecond) || (p.PerSecond > 0 && p.PerSecond < SlowestPace) || p.PerSecond > 1e6 {
		return errors.New("relay settings: the pace must be 0 or between a millionth and a million a second")
	}
	return nil
}

// bucket is a Pace in whole numbers. All that is remembered of it is when the next mail
// may leave: free. Times are in nanoseconds, since a thousandth of a second is too coarse
// for "300 a second".
type bucket struct {
	interval int64 // nanoseconds between mails
}

func newBucket(p Pace) bucket {
	return bucket{interval: int64(float64(time.Second) / p.PerSecond)}
}

// lateness is how late a mail may leave its queue without its successors
// being later, too: it evens out timers that fire late.
const lateness = int64(5 * time.Millisecond)

// arrive looks at a mail that comes when so many are to leave before it. It
// leaves at once, or may after wait, or is turned away when ok is false: wait
// then says when there may be time for it.
func (b bucket) arrive(free int64, ahead int, now, patience int64) (next, wait int64, ok bool) {
	next = b.sane(free, now)
	wait = next - now + int64(ahead)*b.interval
	if wait == 0 {
		next = now + b.interval
	}
	if wait > patience {
		return next, wait - patience, false
	}
	return next, wait, true
}

// depart lets the first of the queue leave, or says how long it must wait.
func (b bucket) depart(free, now int64) (next, wait int64) {
	if sane := b.sane(free, now); sane > now {
		return sane, sane - now
	}
	return max(free, now-lateness) + b.interval, 0
}

// sane keeps free between now and one interval on. It can be beyond only when
// the clock stepped back, and must not stop the mail for as long as that.
func (b bucket) sane(free, now int64) int64 {
	return min(max(free, now), now+b.interval)
}

// pacer is a bucket at work: the queue and one timer for its head.
type pacer struct {
	bucket
	now  func() int64 // milliseconds
	gone <-chan struct{}

	mu    sync.Mutex
	free  int64
	line  *line
	timer *time.Timer
}

func newPacer(p Pace, now func() int64, gone <-chan struct{}) *pacer {
	return &pacer{bucket: newBucket(p), now: now, gone: gone, line: newLine(p.Queue, math.MaxInt)}
}

// wait returns when it is this mail's turn. Whoever gives up while waiting
// gives the turn to the next in line.
func (p *pacer) wait(ctx context.Context, caller string, until time.Time) error {
	w, err := p.join(caller, time.Until(until))
	if w == nil {
		return err
	}
	// The turn was to come in time, but callers may have come since who had
	// fewer mails in line.
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case turn := <-w.called:
		if turn {
			return nil
		}
		return &BusyError{RetryAfter: time.Second}
	case <-timer.C:
		err = &BusyError{RetryAfter: time.Second}
	case <-ctx.Done():
		err = &SendError{Outcome: Unavailable, Err: ctx.Err()}
	case <-p.gone:
		err = &SendError{Outcome: Unavailable, Err: ErrClosed}
	}
	p.giveUp(w)
	return err
}

// join stands in line, unless the mail may leave at once or not at all: then
// there is nothing to wait for.
func (p *pacer) join(caller string, patience time.Duration) (*waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.nanos()
	next, wait, ok := p.arrive(p.free, p.line.ahead(caller), now, int64(patience))
	p.free = next
	switch {
	case !ok:
		return nil, &BusyError{RetryAfter: time.Duration(wait)}
	case wait == 0:
		return nil, nil
	}
	w := p.line.join(claim{caller: caller}, 0, inOrder)
	if w == nil {
		return nil, &BusyError{RetryAfter: time.Duration(p.free - now)}
	}
	if p.line.count == 1 {
		p.wake(p.free - now)
	}
	return w, nil
}

// A pace has no use for the rules of a line for connections: anybody may leave,
// and the first of a lane always does.
func anyDomain(string) bool { return true }
func inOrder(*waiter) bool  { return false }

// giveUp leaves the line, or hands back a turn that came at the same moment.
func (p *pacer) giveUp(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case turn := <-w.called:
		if turn {
			p.free -= p.interval
			p.advance()
		}
	default:
		p.line.leave(w)
	}
}

// tick is the timer's.
func (p *pacer) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
}

// advance lets go whoever may go, and sets the timer for the next.
func (p *pacer) advance() {
	for p.line.count > 0 {
		next, wait := p.depart(p.free, p.nanos())
		p.free = next
		if wait > 0 {
			p.wake(wait)
			return
		}
		p.line.next(anyDomain, inOrder).called <- true
	}
}

func (p *pacer) wake(after int64) {
	if p.timer == nil {
		p.timer = time.AfterFunc(time.Duration(after), p.tick)
		return
	}
	p.timer.Reset(time.Duration(after))
}

func (p *pacer) nanos() int64 { return p.now() * int64(time.Millisecond) }

// stop ends the timer. Nobody may be waiting any more.
func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}
