package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
)

const (
	// maxRefunds wait at most; one more is given up, and the log says so.
	maxRefunds = 1024
	// refundPause follows when all that wait have failed, and after refundLife a refund is
	// given up: the tier most mailboxes wait for has passed by then. refundRest bounds all that
	// is tried at the end, unless one try takes longer: where a store hangs, all that wait would
	// take a try each.
	refundPause = time.Second
	refundLife  = time.Minute
	refundRest  = 5 * time.Second
)

// The ends of a refund in the metrics.
const (
	refundDone    = "given-back"
	refundGivenUp = "given-up"
)

// refunds gives back what was charged for mail that certainly never left, and frees the
// keys of such attempts; it keeps the answers of the others. What cannot be done at once is
// tried again in the background, one after the other. What fails once more goes behind the
// others: they may need another store, or a master that is there.
type refunds struct {
	log      *slog.Logger
	metrics  *metrics
	repeats  Repeats
	longest  time.Duration // that one try takes
	patience func(context.Context) context.Context

	queue chan refund
	stop  chan struct{} // closed: no waiting any more
	done  chan struct{} // closed: the worker has ended

	life context.Context // ends when nothing is tried any more
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool // nothing is queued any more, as nobody would see it
}

// A refund is what is to be given back: to the rules or the limiter that it was charged
// by, whatever is in their place now. Only then may the Idempotency-Key of its attempt, if
// it has one, be used again: a later attempt takes up what it finds charged under the key.
type refund struct {
	release func(context.Context) error // nil if nothing was charged, or when it is done
	whose   slog.Attr                   // for the log: a hash, and which action it was of
	id      throttle.ID
	due     time.Time // when what was charged is given up; a key or an answer is with its lease
	key     *attempt  // whose key is to be free, or its answer kept; nil for none
}

// sendRefund is the refund of a send.
func (s *Server) sendRefund(c *call, send rules.Send, made issued) refund {
	set, id := c.live.Rules, c.id
	if c.attempt != nil {
		c.attempt.refunding = true
	}
	return refund{key: c.attempt, whose: slog.String("mailbox", c.mailbox.Hash()), id: id, release: func(ctx context.Context) error {
		if err := set.Release(ctx, send, id); err != nil {
			return err
		}
		return s.takeBack(ctx, made)
	}}
}

// actionRefund is the refund of an action.
func actionRefund(q actionRequest, c *call) refund {
	id := c.id
	whose := slog.Group("", "action", q.name, "subject", c.subject) // without a name, so both stand for themselves
	return refund{whose: whose, id: id, release: func(ctx context.Context) error {
		_, err := q.limiter.Release(ctx, q.subject, id)
		return err
	}}
}

func newRefunds(o Options, m *metrics) *refunds {
	r := &refunds{
		log: o.Log, metrics: m, repeats: o.Repeats, longest: o.StorePatience, patience: o.Patience,
		queue: make(chan refund, maxRefunds),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	r.life, r.end = context.WithCancel(context.Background())
	go r.work()
	return r
}

// now does a refund before the caller is answered, or else later. A request whose time is
// up still gets a moment for it.
func (r *refunds) now(ctx context.Context, one refund) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.longest)
	defer cancel()
	if err := r.pay(ctx, &one); err != nil {
		r.later(one)
	}
}

// later does a refund in the background.
func (r *refunds) later(one refund) {
	one.due = time.Now().Add(refundLife)
	if err := r.enqueue(one); err != nil {
		r.giveUp(one, err)
	}
}

func (r *refunds) enqueue(one refund) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errStopped
	}
	return r.queueUp(one)
}

// queueUp puts a refund behind the others, also when the server has stopped.
func (r *refunds) queueUp(one refund) error {
	select {
	case r.queue <- one:
		return nil
	default:
		return errTooMany
	}
}

func (r *refunds) work() {
	defer close(r.done)
	defer r.rest()
	failed := 0 // one after the other
	for !r.stopping() {
		select {
		case one := <-r.queue:
			if r.giveBack(one) {
				failed = 0
				continue
			}
			if failed++; failed < len(r.queue) {
				continue
			}
			failed = 0
			if !r.pause() {
				return
			}
		case <-r.stop:
			return
		}
	}
}

// stopping reports whether the server stops. What still waits is the rest then.
func (r *refunds) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// giveBack tries once and reports whether it is done. What fails goes behind the others, until
// its time is up.
func (r *refunds) giveBack(one refund) bool {
	err := r.try(r.patience(r.life), &one)
	if err == nil {
		return true
	}
	if !one.over(time.Now()) && !errors.Is(err, errLeaseLost) {
		err = r.queueUp(one)
	}
	if err != nil {
		r.giveUp(one, err)
	}
	return false
}

// rest tries what is left, once each, for as long as refundRest or as one try takes. For a store
// that hangs they wait together.
func (r *refunds) rest() {
	enough := time.AfterFunc(max(refundRest, r.longest), r.end)
	defer enough.Stop()
	ctx := r.patience(r.life)
	for {
		select {
		case one := <-r.queue:
			if err := r.try(ctx, &one); err != nil {
				r.giveUp(one, err)
			}
		default:
			return
		}
	}
}

// over reports whether a refund that is not done is not tried any more.
func (one *refund) over(now time.Time) bool {
	if one.release != nil {
		return now.After(one.due)
	}
	return one.key.late(now)
}

func (r *refunds) try(ctx context.Context, one *refund) error {
	if r.life.Err() != nil {
		return errStopped
	}
	ctx, cancel := context.WithTimeout(ctx, r.longest)
	defer cancel()
	switch {
	case one.key == nil:
		return r.pay(ctx, one)
	case one.key.late(time.Now()):
		return cmp.Or(r.payPlace(ctx, one), errTooLate)
	}
	ctx, end := context.WithDeadline(ctx, one.key.until)
	defer end()
	return r.pay(ctx, one)
}

var (
	errTooLate = errors.New("somebody else may have begun the send anew")
	errStopped = errors.New("the server has stopped")
	errTooMany = errors.New("too many are waiting")
)

// pay does what is still to be done of a refund. Place and code are the attempt's own, so it
// is never too late for them: they are nobody else's.
func (r *refunds) pay(ctx context.Context, one *refund) error {
	if err := r.payPlace(ctx, one); err != nil || one.key == nil {
		return err
	}
	return r.repeats.end(ctx, one.key)
}

func (r *refunds) payPlace(ctx context.Context, one *refund) error {
	if one.release == nil {
		return nil
	}
	if err := one.release(ctx); err != nil {
		return err
	}
	one.release = nil
	r.metrics.refunded(refundDone)
	return nil
}

// pause waits between two rounds of tries, and reports whether there is to be another.
func (r *refunds) pause() bool {
	timer := time.NewTimer(refundPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stop:
		return false
	}
}

func (r *refunds) giveUp(one refund, why error) {
	if one.release != nil {
		r.metrics.refunded(refundGivenUp)
		r.log.Warn("a place could not be given back, and may stay charged until it leaves its windows",
			one.whose, "id", one.id.String(), "cause", why.Error())
	}
	if one.key != nil {
		r.log.Warn(one.key.stays(), "request_id", one.key.requestID, "cause", why.Error())
	}
}

// close stops the worker and waits until it has tried everything, or has had enough of it, or
// until ctx ends.
func (r *refunds) close(ctx context.Context) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
	r.mu.Unlock()
	r.wait(ctx)
}

// cut has what is left given up untried, after close.
func (r *refunds) cut(ctx context.Context) {
	r.end()
	r.wait(ctx)
}

func (r *refunds) wait(ctx context.Context) {
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}
