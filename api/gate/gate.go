package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
)

// Request is how a request is shown to the functions of Options: in Fiber, or in net/http.
type Request interface{ *fiber.Ctx | *Exchange }

// Options say what to count, and what to answer. Only Limiter is required.
type Options[C Request] struct {
	// Limiter decides. With a LeakyBucket requests are held back: see [ErrQueue].
	Limiter *throttle.Limiter
	// Name is the "rule" of answers. The default is "requests".
	Name string
	// Key returns what a request is counted by. Where it is nil or returns nothing, that is the
	// address of the connection, of IPv6 its first 64 bits. No forwarded header is trusted:
	// behind a proxy, read the header here. The limiter's own keys are [KeyOf] and [KeyOfPeer].
	Key func(C) string
	// Release reports whether a request that the handler has answered with this status is
	// refunded, such as status < 400 for a sign-in form that counts failures only. A panic is
	// 500. So is an error of a Fiber handler that is no *fiber.Error, whatever an ErrorHandler of
	// the app makes of it. The default is never.
	Release func(status int) bool
	// Refuse answers a refused request. The default is a problem of status 429.
	Refuse func(C, throttle.Verdict) error
	// Failed answers when the limiter has failed, or the request's context ended while it was
	// held back, which is an [ErrQueue]; it may call Next to admit the request. What may have
	// been charged is refunded before the call, if that takes less than a second. The default
	// is [Failed].
	Failed func(C, error) error
}

// pass is a request that has been counted. It knows neither Fiber nor net/http.
type pass struct {
	throttle.Verdict
	ctx     context.Context
	limiter *throttle.Limiter
	key     string
	release func(status int) bool
}

// complete checks the options and sets the defaults.
func (o *Options[C]) complete() error {
	if o.Limiter == nil {
		return errors.New("gate: Limiter is missing")
	}
	o.Name = cmp.Or(o.Name, "requests")
	if o.Refuse == nil {
		o.Refuse = func(c C, v throttle.Verdict) error {
			rep := report.OfOne(o.Name, "these requests", "", &v)
			return problem(c, http.StatusTooManyRequests, rep.RetryAfter(), rep.Refusal(nil))
		}
	}
	if o.Failed == nil {
		o.Failed = Failed[C]
	}
	return nil
}

// begin counts a request, from a peer unless Key names it, and holds it back for as long as a queue says.
func (o *Options[C]) begin(ctx context.Context, c C, peer string) (*pass, error) {
	p := &pass{ctx: ctx, limiter: o.Limiter, key: "peer " + peer, release: o.Release}
	if from, err := netip.ParseAddrPort(peer); err == nil {
		p.key = KeyOfPeer(from.Addr())
	}
	if o.Key != nil {
		if name := o.Key(c); name != "" {
			p.key = KeyOf(name)
		}
	}
	var err error
	if p.Verdict, err = Take(ctx, o.Limiter, p.key); err != nil || !p.Allowed {
		return p, err
	}
	if err = hold(ctx, p.Delay); err != nil {
		refund(ctx, o.Limiter, p.key, p.Admission)
	}
	return p, err
}

// end refunds the request if Release says so of the status of its answer.
func (p *pass) end(status int) {
	if p.release != nil && p.release(status) && refund(p.ctx, p.limiter, p.key, p.Admission) {
		if after, err := p.limiter.Peek(p.ctx, p.key); err == nil {
			p.Verdict = after
		}
	}
}

// Take counts one under a key. What a Take that failed may have counted is refunded at once, or not at
// all; a counter, which knows no ids, does not refund it.
func Take(ctx context.Context, limiter *throttle.Limiter, key string) (throttle.Verdict, error) {
	id := throttle.NewID()
	verdict, err := limiter.TakeID(ctx, key, id)
	if err != nil {
		refund(ctx, limiter, key, throttle.Admission{ID: id})
	}
	return verdict, err
}

// refundTimeout bounds how long an answer waits for the refund of its request.
const refundTimeout = time.Second

// refund releases a request, also after its own time, and reports whether that is done.
// The answer waits for it, so that the next request is not refused because of it. If it fails
// the request has counted.
func refund(ctx context.Context, limiter *throttle.Limiter, key string, taken throttle.Admission) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	released, err := limiter.Release(ctx, key, taken)
	return err == nil && released
}

// ErrQueue is the kind of error of a request whose context ended while it was held back. Fiber
// v2 ends no request's context by itself, not even when the client has gone, so a middleware in
// front of the gate has to set a deadline.
var ErrQueue = errors.New("the request's time ended in the queue")

// hold holds a request back for as long as a queue says.
func hold(ctx context.Context, delay int64) error {
	if delay <= 0 {
		return nil
	}
	select {
	case <-time.After(time.Duration(delay) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrQueue, ctx.Err())
	}
}
