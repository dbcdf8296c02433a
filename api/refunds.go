package api

import (
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
	// refundTry bounds one try, refundPause lies between two, and after refundLife a
	// refund is given up: the tier most mailboxes wait for has passed by then.
	refundTry   = time.Second
	refundPause = time.Second
	refundLife  = time.Minute
)

// The ends of a refund in the metrics.
const (
	refundDone    = "given-back"
	refundGivenUp = "given-up"
)

// refunds gives back what was charged for mail that certainly never left. What cannot be
// given back at once is tried again in the background, one after the other.
type refunds struct {
	log      *slog.Logger
	metrics  *metrics
	patience func(context.Context) context.Context

	queue   chan refund
	stop    chan struct{} // closed: no waiting any more
	done    chan struct{} // closed: the worker has ended
	closing sync.Once
}

// A refund is what is to be given back: to the rules or the limiter that it was charged
// by, whatever is in their place now.
type refund struct {
	release func(context.Context) error
	whose   slog.Attr // a hash, for the log
	id      throttle.ID
	due     time.Time // when it is given up
	stop    time.Time // no try begins after; none, if zero
}

// sendRefund is the refund of a send. Only when it is done may its Idempotency-Key, if it
// has one, be used again: a later attempt takes up what it finds charged under the key.
func (s *Server) sendRefund(c *call, send rules.Send, code string) refund {
	set, to, id, a := c.live.Rules, c.mailbox, c.id, c.attempt
	one := refund{whose: slog.String("mailbox", to.Hash()), id: id}
	if a != nil {
		a.refunding, one.stop = true, a.stop
	}
	one.release = func(ctx context.Context) error {
		if err := set.Release(ctx, send, id); err != nil {
			return err
		}
		if err := s.takeBack(ctx, to, code); err != nil || a == nil {
			return err
		}
		return s.free(ctx, a)
	}
	return one
}

// actionRefund is the refund of an action.
func actionRefund(q actionRequest, c *call) refund {
	id := c.id
	return refund{whose: slog.String("subject", c.subject), id: id, release: func(ctx context.Context) error {
		_, err := q.limiter.Release(ctx, q.subject, id)
		return err
	}}
}

func newRefunds(o Options, m *metrics) *refunds {
	r := &refunds{
		log: o.Log, metrics: m, patience: o.Patience,
		queue: make(chan refund, maxRefunds),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	go r.work()
	return r
}

// now gives a place back before the caller is answered, or else later. A request whose
// time is up still gets a moment for it.
func (r *refunds) now(ctx context.Context, one refund) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTry)
	defer cancel()
	if err := one.release(ctx); err != nil {
		r.later(one)
		return
	}
	r.metrics.refunded(refundDone)
}

// later gives a place back in the background.
func (r *refunds) later(one refund) {
	one.due = time.Now().Add(refundLife)
	if !one.stop.IsZero() && one.stop.Before(one.due) {
		one.due = one.stop
	}
	select {
	case r.queue <- one:
	default:
		r.giveUp(one, "too many are waiting")
	}
}

func (r *refunds) work() {
	defer close(r.done)
	for {
		select {
		case one := <-r.queue:
			r.giveBack(one)
		case <-r.stop:
			r.rest()
			return
		}
	}
}

// rest tries what is left, once each, and no more once the store has failed again.
func (r *refunds) rest() {
	var failed error
	for {
		select {
		case one := <-r.queue:
			if failed == nil {
				failed = r.try(one)
			}
			r.settle(one, failed)
		default:
			return
		}
	}
}

// giveBack tries until it is done, the refund's time is up or the server stops. While
// one waits the others do: what keeps it waiting is the store they all need.
func (r *refunds) giveBack(one refund) {
	for {
		err := r.try(one)
		if err == nil || time.Now().After(one.due) || !r.pause() {
			r.settle(one, err)
			return
		}
	}
}

// settle writes off a refund, one way or the other.
func (r *refunds) settle(one refund, err error) {
	if err != nil {
		r.giveUp(one, err.Error())
		return
	}
	r.metrics.refunded(refundDone)
}

var errTooLate = errors.New("somebody else may have begun the send anew")

func (r *refunds) try(one refund) error {
	if !one.stop.IsZero() && time.Now().After(one.stop) {
		return errTooLate
	}
	ctx, cancel := context.WithTimeout(r.patience(context.Background()), refundTry)
	defer cancel()
	return one.release(ctx)
}

// pause waits between two tries, and reports whether there is to be another.
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

func (r *refunds) giveUp(one refund, why string) {
	r.metrics.refunded(refundGivenUp)
	r.log.Warn("a place could not be given back, and may stay charged until it leaves its windows",
		one.whose, "id", one.id.String(), "cause", why)
}

// close stops the worker once it has tried everything, or when ctx ends.
func (r *refunds) close(ctx context.Context) {
	r.closing.Do(func() { close(r.stop) })
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}
