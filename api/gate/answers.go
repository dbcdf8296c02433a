package gate

import (
	"errors"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
)

// refuse is the 429 of mailgate itself.
func (g *gate) refuse(c *fiber.Ctx, v throttle.Verdict) error {
	return problem(c, fiber.StatusTooManyRequests, wire.Wait(&v), refusal(g.Name, &v))
}

// refusal is the body of a 429.
func refusal(rule string, v *throttle.Verdict) []byte {
	limits := wire.AppendLimits(nil, v, "")
	b := wire.AppendProblem(make([]byte, 0, 768), wire.Quota, "", wire.QuotaTitle, fiber.StatusTooManyRequests)
	b = wire.AppendReached(b, v, "these requests", "The next one is let through")
	b = append(b, `,"rule":`...)
	b = wire.AppendString(b, rule)
	b = append(b, ',')
	b = wire.AppendVerdict(b, v, limits)
	b = append(b, ',')
	return append(wire.AppendViolated(b, limits), '}')
}

// retry is how many milliseconds whoever could not be counted is told to wait.
const retry = 1000

// Failed is the answer where Options.Failed is nil. It does not show the error: an
// Options.Failed of your own can log that, and then answer by this.
func Failed(c *fiber.Ctx, err error) error {
	const status = fiber.StatusServiceUnavailable
	if errors.Is(err, ErrTurn) {
		b := wire.AppendProblem(nil, wire.Ours, "busy", "Too many requests are waiting", status)
		return problem(c, status, retry, append(b, `"The turn of this request did not come in time."}`...))
	}
	return problem(c, status, retry, undecided())
}

// undecided is the body of a 503 where the limiter failed.
func undecided() []byte {
	b := wire.AppendProblem(nil, wire.Ours, "store-unavailable", "The history cannot be used now", fiber.StatusServiceUnavailable)
	return append(b, `"Whether this request may be let through cannot be decided now."}`...)
}

func unknown(c *fiber.Ctx) error {
	const status = fiber.StatusUnauthorized
	b := wire.AppendProblem(nil, wire.Ours, "unauthorized", "Nobody is signed in", status)
	b = append(b, `"Sign in first."}`...)
	return problem(c, status, 0, b)
}

func problem(c *fiber.Ctx, status int, wait int64, body []byte) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if wait > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.FormatInt(wire.Seconds(wait), 10))
	}
	c.Set(fiber.HeaderContentType, wire.ProblemType)
	return c.Status(status).Send(body)
}

// setRateLimit writes the headers through Fiber, so that a middleware in front can read them,
// unless the handler has written its own.
func setRateLimit(c *fiber.Ctx, v *throttle.Verdict) {
	if c.GetRespHeader(wire.RateLimit) != "" || c.GetRespHeader(wire.RateLimitPolicy) != "" || len(v.Tiers) == 0 {
		return
	}
	limits := wire.AppendLimits(nil, v, "")
	c.Set(wire.RateLimitPolicy, string(wire.AppendRateLimitPolicy(nil, limits)))
	c.Set(wire.RateLimit, string(wire.AppendRateLimit(nil, limits)))
}
