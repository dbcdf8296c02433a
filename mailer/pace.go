package mailer

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Pace is a leaky bucket in front of the relays: mails leave one by one, at
// even distances, at most PerSecond of them, in the order in which they came.
// Up to Queue may wait; a mail that finds the queue full, or that would wait
// beyond its deadline, is turned away at once with ErrBusy.
type Pace struct {
	PerSecond float64 // 0: no limit
	Queue     int     // 0: nobody waits
}

func (p Pace) check() error {
	if p.PerSecond < 0 || math.IsNaN(p.PerSecond) || (p.PerSecond > 0 && p.PerSecond < 1e-6) || p.PerSecond > 1e6 {
		return errors.New("relay settings: the pace must be 0 or between a millionth and a million a second")
	}
	return nil
}

// bucketState is all that the bucket remembers. Times are in nanoseconds,
// since a thousandth of a second is too coarse for "300 a second".
type bucketState struct {
	free    int64 // when the next mail may leave
	waiting int
}

// bucket is a Pace in whole numbers.
type bucket struct {
	interval int64 // nanoseconds between mails
	queue    int
}

func newBucket(p Pace) bucket {
	return bucket{interval: int64(float64(time.Second) / p.PerSecond), queue: p.Queue}
}

// lateness is how late a mail may leave its queue without its successors
// being later, too: it evens out timers that fire late.
const lateness = int64(5 * time.Millisecond)

// arrive books a mail in. It may leave after wait, or is turned away when ok
// is false; wait then says when there may be room.
func (b bucket) arrive(s bucketState, now, patience int64) (next bucketState, wait int64, ok bool) {
	s.free = b.sane(s.free, now)
	wait = s.free - now + int64(s.waiting)*b.interval
	switch {
	case s.waiting == 0 && wait == 0:
		s.free = now + b.interval
		return s, 0, true
	case s.waiting >= b.queue:
		return s, wait - int64(b.queue)*b.interval, false
	case wait > patience:
		return s, wait - patience, false
	}
	s.waiting++
	return s, wait, true
}

// depart lets the first of the queue leave, or says how long it must wait.
func (b bucket) depart(s bucketState, now int64) (next bucketState, wait int64) {
	free := b.sane(s.free, now)
	if free > now {
		s.free = free
		return s, free - now
	}
	s.free = max(s.free, now-lateness) + b.interval
	s.waiting--
	return s, 0
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
	state bucketState
	line  *list.List // of chan struct{}, each with room for one token
	timer *time.Timer
}

func newPacer(p Pace, now func() int64, gone <-chan struct{}) *pacer {
	return &pacer{bucket: newBucket(p), now: now, gone: gone, line: list.New()}
}

// wait returns when it is this mail's turn. Whoever gives up while waiting
// gives the turn to the next in line.
func (p *pacer) wait(ctx context.Context, until time.Time) error {
	turn, place, err := p.join(time.Until(until))
	if turn == nil {
		return err
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.gone:
		err = ErrClosed
	}
	p.giveUp(turn, place)
	return &SendError{Outcome: Unavailable, Err: err}
}

// join stands in line, unless the mail may leave at once or not at all: then
// there is no turn to wait for.
func (p *pacer) join(patience time.Duration) (turn chan struct{}, place *list.Element, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, wait, ok := p.arrive(p.state, p.nanos(), int64(patience))
	p.state = next
	switch {
	case !ok:
		return nil, nil, &BusyError{RetryAfter: time.Duration(wait)}
	case wait == 0:
		return nil, nil, nil
	}
	turn = make(chan struct{}, 1)
	place = p.line.PushBack(turn)
	if place == p.line.Front() {
		p.wake(wait)
	}
	return turn, place, nil
}

// giveUp leaves the line, or hands back a turn that came at the same moment.
func (p *pacer) giveUp(turn chan struct{}, place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-turn:
		p.state.free -= p.interval
		p.advance()
	default:
		p.line.Remove(place)
		p.state.waiting--
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
	for p.line.Len() > 0 {
		next, wait := p.depart(p.state, p.nanos())
		p.state = next
		if wait > 0 {
			p.wake(wait)
			return
		}
		p.line.Remove(p.line.Front()).(chan struct{}) <- struct{}{}
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
