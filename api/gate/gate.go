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

// Options say what to count, and what to answer. Only Limiter is required.
type Options struct {
	// Limiter decides. With a LeakyBucket requests are held back, and need a deadline: see
	// [ErrQueue].
	Limiter throttle.Limiter
	// Name is the "rule" of answers. The default is "requests".
	Name string
	// Key returns what a request is counted by. Where it is nil or returns nothing, that is the
	// address of the connection, of IPv6 its first 64 bits. No forwarded header is trusted:
	// behind a proxy, read the header here. The limiter's own keys are [KeyOf] and [KeyOfPeer].
	Key func(*fiber.Ctx) string
	// Release reports whether a request that the handler has answered with this status is
	// refunded, such as status < 400 for a sign-in form that counts failures only. An error
	// of the handler is a *fiber.Error's code or 500, whatever an ErrorHandler of the app
	// makes of it, and a panic is 500. The default is never.
	Release func(status int) bool
	// Refuse answers a refused request. The default is a problem of status 429.
	Refuse func(*fiber.Ctx, throttle.Verdict) error
	// Failed answers when the limiter has failed, or the request's context ended while it was
	// held back, which is an [ErrQueue]; it may call Next to admit the request. What may have
	// been charged is refunded before the call, if that takes less than a second. The default
	// is [Failed].
	Failed func(*fiber.Ctx, error) error
}

// New makes the middleware. Routes that use it are counted together.
func New(o Options) (fiber.Handler, error) {
	if o.Limiter == nil {
		return nil, errors.New("gate: Limiter is missing")
	}
	o.Name = cmp.Or(o.Name, "requests")
	g := &gate{o, newPartitions()}
	if g.Refuse == nil {
		g.Refuse = g.refuse
	}
	if g.Failed == nil {
		g.Failed = Failed
	}
	return g.handle, nil
}

type gate struct {
	Options
	partitions partitions
}

func (g *gate) handle(c *fiber.Ctx) error {
	key, id := g.key(c), throttle.NewID()
	verdict, err := g.Limiter.Take(c.UserContext(), key, id)
	if err != nil {
		g.refund(c.UserContext(), key, throttle.Admission{ID: id}) // a counter does not know ids
		return g.Failed(c, err)
	}
	if !verdict.Allowed {
		g.setRateLimit(c, key, &verdict)
		return g.Refuse(c, verdict)
	}
	taken := throttle.Admission{ID: id, At: verdict.At}
	if err := hold(c.UserContext(), verdict.Delay); err != nil {
		g.refund(c.UserContext(), key, taken)
		return g.Failed(c, err)
	}
	verdict, err = g.next(c, key, taken, verdict)
	g.setRateLimit(c, key, &verdict)
	return err
}

// next calls the handler, and refunds the request if its answer does not count. A panic
// reaches the middleware that recovers it.
func (g *gate) next(c *fiber.Ctx, key string, taken throttle.Admission, verdict throttle.Verdict) (after throttle.Verdict, err error) {
	if g.Release == nil {
		return verdict, c.Next()
	}
	ctx, status := c.UserContext(), fiber.StatusInternalServerError
	after = verdict
	defer func() {
		if g.Release(status) && g.refund(ctx, key, taken) {
			if v, err := g.Limiter.Peek(ctx, key); err == nil {
				after = v
			}
		}
	}()
	err = c.Next()
	status = statusOf(c, err)
	return after, err
}

// refundTimeout bounds how long an answer waits for the refund of its request.
const refundTimeout = time.Second

// refund releases a request, also after its own time, and reports whether that is done.
// The answer waits for it, so that the next request is not refused because of it. If it fails
// the request has counted.
func (g *gate) refund(ctx context.Context, key string, taken throttle.Admission) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	released, err := g.Limiter.Release(ctx, key, taken)
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

// statusOf returns the status that the answer will have: an error's is only written after the
// last middleware.
func statusOf(c *fiber.Ctx, err error) int {
	if err == nil {
		return c.Response().StatusCode()
	}
	if known, ok := errors.AsType[*fiber.Error](err); ok {
		return known.Code
	}
	return fiber.StatusInternalServerError
}
