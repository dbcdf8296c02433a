package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"
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

// exchange is a request and its answer, as the gate needs them.
type exchange interface {
	context() context.Context
	// peer returns the limiter's key for the address of the connection.
	peer() string
	// set sets a header field of the answer.
	set(name, value string)
	// answer writes the answer.
	answer(status int, body []byte) error
	// next calls the handler, and ends with the status of its answer just before that can be sent.
	// own reports whether the handler has written RateLimit fields of its own.
	next(ends func(status int, own bool)) error
}

func exchangeOf[C Request](c C) exchange {
	if c, ok := any(c).(*fiber.Ctx); ok {
		return onFiber{c}
	}
	return any(c).(*Exchange)
}

type gate[C Request] struct{ Options[C] }

func newGate[C Request](o Options[C]) (*gate[C], error) {
	if o.Limiter == nil {
		return nil, errors.New("gate: Limiter is missing")
	}
	g := &gate[C]{o}
	g.Name = cmp.Or(o.Name, "requests")
	if g.Refuse == nil {
		g.Refuse = g.refuse
	}
	if g.Failed == nil {
		g.Failed = Failed[C]
	}
	return g, nil
}

func (g *gate[C]) handle(c C) error {
	x := exchangeOf(c)
	key, ctx := g.key(c, x), x.context()
	verdict, err := Take(ctx, g.Limiter, key)
	if err != nil {
		return g.Failed(c, err)
	}
	if !verdict.Allowed {
		setRateLimit(x, key, &verdict)
		return g.Refuse(c, verdict)
	}
	if err := hold(ctx, verdict.Delay); err != nil {
		refund(ctx, g.Limiter, key, verdict.Admission)
		return g.Failed(c, err)
	}
	return x.next(func(status int, own bool) {
		if g.Release != nil && g.Release(status) && refund(ctx, g.Limiter, key, verdict.Admission) {
			if after, err := g.Limiter.Peek(ctx, key); err == nil {
				verdict = after
			}
		}
		if !own {
			setRateLimit(x, key, &verdict)
		}
	})
}

func (g *gate[C]) key(c C, x exchange) string {
	if g.Key != nil {
		if name := g.Key(c); name != "" {
			return KeyOf(name)
		}
	}
	return x.peer()
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
	timer := time.NewTimer(time.Duration(delay) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrQueue, ctx.Err())
	}
}
