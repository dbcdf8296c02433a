package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

const (
	maxRefunds  = 1024        // in the background at once; one more is given up
	refundPause = time.Second // between two tries
	refundLife  = time.Minute // then one is given up
	refundEnd   = 5 * time.Second
	moment      = time.Second
)

// The results in Metrics.Refunds.
const (
	RefundDone    = "refunded"
	RefundGivenUp = "given-up"
)

// refunds refunds charges for email that certainly never left, and then frees the
// key of its request; it also keeps answers. What fails is tried again in the background.
type refunds struct {
	o         Options
	stop, end context.CancelFunc
	stopped   context.Context // ends when each is tried once more
	ended     context.Context // ends when nothing is tried any more

	mu      sync.Mutex
	waiting int
	all     sync.WaitGroup
}

// refund is what is to be done, step by step; a step that is done is nil. Charge and code are
// the attempt's own, and a lease that has ended frees or answers nothing, so it is never too
// late for a step.
type refund struct {
	release func(context.Context) error // of quota
	revoke  func(context.Context) error // of a code
	whose   slog.Attr                   // a hash
	id      throttle.ID

	claim  *claim // is freed, or answered; nil: none
	answer *idempotency.Answer
}

// Refund refunds, in the background, what a failed Take may have charged. A counter
// does not know ids, so there it does nothing. whose is for the log.
func (s *Service) Refund(limiter *throttle.Limiter, key string, id throttle.ID, whose slog.Attr) {
	if limiter.Algorithm.Exact() {
		s.refunds.later(&refund{whose: whose, id: id, release: func(ctx context.Context) error {
			_, err := limiter.Release(ctx, key, throttle.Admission{ID: id})
			return err
		}})
	}
}

func newRefunds(o Options) *refunds {
	r := &refunds{o: o}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.ended, r.end = context.WithCancel(context.Background())
	return r
}

// now does a refund before the caller is answered, or else later. The end of the request does
// not end it.
func (r *refunds) now(one *refund) {
	ctx, cancel := context.WithTimeout(context.Background(), r.o.StoreTimeout)
	defer cancel()
	if err := r.try(ctx, one); err != nil {
		r.later(one)
	}
}

// later does a refund in the background.
func (r *refunds) later(one *refund) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped.Err() != nil:
		r.giveUp(one, errStopped)
	case r.waiting == maxRefunds:
		r.giveUp(one, errTooMany)
	default:
		r.waiting++
		r.all.Go(func() { r.retry(one) })
	}
}

func (r *refunds) retry(one *refund) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting--
	}()
	due := time.Now().Add(refundLife)
	for {
		last := r.stopped.Err() != nil || time.Now().After(due)
		ctx, cancel := context.WithTimeout(r.ended, r.o.StoreTimeout)
		err := r.try(ctx, one)
		cancel()
		if err == nil {
			return
		}
		if last || errors.Is(err, errLeaseEnded) {
			r.giveUp(one, err)
			return
		}
		select {
		case <-time.After(refundPause):
		case <-r.stopped.Done():
		}
	}
}

var (
	errStopped    = errors.New("the server has stopped")
	errTooMany    = errors.New("too many are waiting")
	errLeaseEnded = errors.New("the lease had ended")
)

// try does what is still to be done.
func (r *refunds) try(ctx context.Context, one *refund) error {
	if one.release != nil {
		if err := one.release(ctx); err != nil {
			return err
		}
		one.release = nil
		r.o.Metrics.Refunds.WithLabelValues(RefundDone).Inc()
	}
	if one.revoke != nil {
		if err := one.revoke(ctx); err != nil {
			return err
		}
		one.revoke = nil
	}
	if one.claim == nil {
		return nil
	}
	if one.answer == nil {
		_, err := one.claim.requests.Abandon(ctx, one.claim.lease)
		return err
	}
	kept, err := one.claim.requests.Finish(ctx, one.claim.lease, *one.answer)
	if err == nil && !kept {
		err = errLeaseEnded
	}
	return err
}

func (r *refunds) giveUp(one *refund, why error) {
	if one.release != nil {
		r.o.Metrics.Refunds.WithLabelValues(RefundGivenUp).Inc()
		r.o.Log.Warn("quota could not be refunded, and stays charged until its windows end",
			one.whose, "id", one.id.String(), "cause", why.Error())
	}
	if one.revoke != nil {
		r.o.Log.Warn("a code could not be revoked, and stays valid until it expires, although its email never left",
			one.whose, "id", one.id.String(), "cause", why.Error())
	}
	if one.claim != nil {
		r.o.Log.Warn(one.stays(), "request_id", one.claim.requestID, "cause", why.Error())
	}
}

// stays says what a key is that could not be freed or answered.
func (one *refund) stays() string {
	failed, then := "a key could not be freed", "sends again"
	if one.answer != nil {
		failed = "an answer could not be stored"
	}
	if one.claim.handedOver {
		then = "gets delivery-unknown (504)"
	}
	return failed + ": the key stays in flight until its lease ends; a retry after that " + then
}

// close tries everything once more, until ctx ends or refundEnd has passed, and at least for a
// moment. The rest is given up.
func (r *refunds) close(ctx context.Context) {
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.all.Wait()
		close(done)
	}()
	enough, cancel := context.WithTimeout(ctx, max(refundEnd, r.o.StoreTimeout))
	defer cancel()
	await(done, enough.Done())
	await(done, time.After(moment))
	r.end()
	await(done, time.After(moment)) // a store may ignore its context
}

// await waits for the first of two channels.
func await[T any](done <-chan struct{}, enough <-chan T) {
	select {
	case <-done:
	case <-enough:
	}
}
