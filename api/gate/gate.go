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

// Options say whom to count, and what to tell those who are refused. The limiter is
// required; everything else has the default that is named there.
type Options struct {
	// Limiter decides, such as one of throttle/local, or of throttle/cluster. One whose verdicts
	// have a Delay, that is by a LeakyBucket, holds requests back until their turn, and needs
	// a deadline in front: see [ErrTurn]. [KeyOfUser], [KeyOf] and [KeyOfPeer]
	// are the keys it is asked by, to look at a caller or to reset one.
	Limiter throttle.Limiter
	// Name is what answers call this limit, as their "rule". "requests".
	Name string

	// User says who is signed in. A signed-in user is counted by that name, from wherever the
	// request comes. Without it no user is.
	User func(*fiber.Ctx) (name string, ok bool)
	// NeedUser answers 401 to a caller who is not signed in, and counts nothing.
	NeedUser bool
	// Key says who is counted otherwise. Where it is nil or has nothing to say, that is
	// the connection's peer: its address, of IPv6 the first 64 bits. No forwarded header
	// is believed: a program behind a proxy that it trusts reads the header in here.
	Key func(*fiber.Ctx) string
	// Skip lets a request through without counting it. None, if nil.
	Skip func(*fiber.Ctx) bool
	// Release gives a request its place back when the handler has answered it with this
	// status. So a sign-in form counts only what failed: status < 400. None, if nil. An
	// error of the handler is a *fiber.Error's code or 500, whatever an ErrorHandler of
	// the app makes of it, and a panic is 500. The handler may be another gate, of which
	// 429 is a refusal.
	Release func(status int) bool
	// Quiet keeps the RateLimit headers out of answers to those let through, for routes
	// that speak of another limit there, or of none.
	Quiet bool

	// Refuse answers a request too many. A problem of status 429, if nil.
	Refuse func(*fiber.Ctx, throttle.Verdict) error
	// Failed answers where the limiter could not decide, or the request's context ended
	// before its turn, which is an [ErrTurn]; calling Next there lets the request through. A
	// place that was taken all the same has been given back before, for which a store that
	// fails gets a second at most, and a disk of this machine that hangs as long as it does.
	// So the request is not counted; unless giving back failed as well, or the limiter is a
	// counter, and then it may be. A problem of status
	// 503, if nil, which does not show the error: one that logs it goes on with [Failed].
	Failed func(*fiber.Ctx, error) error
}

// New makes the middleware. It may be used for any number of routes, which then count
// together.
func New(o Options) (fiber.Handler, error) {
	if o.Limiter == nil {
		return nil, errors.New("gate: Limiter is missing")
	}
	if o.NeedUser && o.User == nil {
		return nil, errors.New("gate: NeedUser is set, but User is missing")
	}
	o.Name = cmp.Or(o.Name, "requests")
	g := &gate{o}
	if g.Refuse == nil {
		g.Refuse = g.refuse
	}
	if g.Failed == nil {
		g.Failed = Failed
	}
	return g.handle, nil
}

type gate struct{ Options }

func (g *gate) handle(c *fiber.Ctx) error {
	if g.Skip != nil && g.Skip(c) {
		return c.Next()
	}
	key, known := g.key(c)
	if !known {
		return unknown(c)
	}
	id := throttle.NewID()
	verdict, err := g.Limiter.Take(c.UserContext(), key, id)
	if err != nil {
		g.giveBackFailed(c.UserContext(), key, id)
		return g.Failed(c, err)
	}
	if !verdict.Allowed {
		setRateLimit(c, &verdict)
		return g.Refuse(c, verdict)
	}
	taken := throttle.Admission{ID: id, At: verdict.At}
	if err := held(c.UserContext(), verdict.Delay); err != nil {
		g.giveBack(c.UserContext(), key, taken)
		return g.Failed(c, err)
	}
	verdict, err = g.next(c, key, taken, verdict)
	if !g.Quiet {
		setRateLimit(c, &verdict)
	}
	return err
}

// next lets the request through, and gives its quota back where its answer does not count. One
// whose handler panics is answered by the middleware that recovers it, with a 500.
func (g *gate) next(c *fiber.Ctx, key string, taken throttle.Admission, verdict throttle.Verdict) (after throttle.Verdict, err error) {
	if g.Release == nil {
		return verdict, c.Next()
	}
	ctx, status := c.UserContext(), fiber.StatusInternalServerError
	after = verdict
	defer func() {
		if g.Release(status) && g.giveBack(ctx, key, taken) {
			if v, err := g.Limiter.Peek(ctx, key); err == nil {
				after = v
			}
		}
	}()
	err = c.Next()
	status = statusOf(c, err)
	return after, err
}

// giveBackTime bounds how long an answer waits for its place to be given back, if the limiter
// heeds its context: a disk that hangs does not.
const giveBackTime = time.Second

// giveBack gives a request's quota back, also where its own time is up, and reports whether
// that is done. The answer waits for it, so that the next request is not refused because of it. If it
// fails the request has counted, which is the safe side.
func (g *gate) giveBack(ctx context.Context, key string, taken throttle.Admission) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	released, err := g.Limiter.Release(ctx, key, taken)
	return err == nil && released
}

// giveBackFailed gives back what a Take that failed may have charged. A counter does not know
// ids, so there the request may have counted.
func (g *gate) giveBackFailed(ctx context.Context, key string, id throttle.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if h, ok := g.Limiter.(throttle.Historian); ok {
		if _, err := h.History(ctx, key); !errors.Is(err, errors.ErrUnsupported) {
			_, _ = g.Limiter.Release(ctx, key, throttle.Admission{ID: id})
		}
	}
}

// ErrTurn is the kind of error of a request whose context ended before its turn came. Fiber v2
// ends no request's context by itself, not even where the client has gone: whoever is in a
// queue is waited for and handled, unless a middleware in front of the gate sets a deadline.
var ErrTurn = errors.New("the turn of the request did not come in time")

// held waits for the turn of a request that was let into a queue.
func held(ctx context.Context, delay int64) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(delay) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrTurn, ctx.Err())
	}
}

// statusOf is the status the answer will have: an error's is only written after the
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
