package gate

import (
	"errors"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
)

func (g *gate) refuse(c *fiber.Ctx, v throttle.Verdict) error {
	told := report.OfOne(g.Name, "these requests", "", &v)
	return problem(c, fiber.StatusTooManyRequests, told.RetryAfter(), told.Refusal(nil))
}

// retry is after how many milliseconds a request that could not be counted can be repeated.
const retry = 1000

// Failed answers with a problem of status 503 that does not show the error. It is the default of
// Options.Failed; one that logs the error can return this.
func Failed(c *fiber.Ctx, err error) error {
	return problem(c, fiber.StatusServiceUnavailable, retry, unavailable(err))
}

// unavailable returns the body of a 503.
func unavailable(err error) []byte {
	var o wire.Object
	if errors.Is(err, ErrQueue) {
		o.Problem(wire.Ours+"busy", "Too many requests waiting", fiber.StatusServiceUnavailable, "This request has waited in a queue until its time was over.")
		return o.End()
	}
	o.Problem(wire.Ours+"store-unavailable", "Storage unavailable", fiber.StatusServiceUnavailable,
		"Whether this request may be let through cannot be decided now.")
	return o.End()
}

func problem(c *fiber.Ctx, status int, wait int64, body []byte) error {
	setProblem(c.Set, wait)
	return c.Status(status).Send(body)
}

func setProblem(set func(name, value string), wait int64) {
	set(fiber.HeaderCacheControl, "no-store")
	set(fiber.HeaderRetryAfter, strconv.FormatInt(wire.Seconds(wait), 10))
	set(fiber.HeaderContentType, wire.ProblemType)
}

// setRateLimit writes the headers through Fiber, so that a middleware in front can read them,
// unless the handler has written its own.
func (g *gate) setRateLimit(c *fiber.Ctx, key string, v *throttle.Verdict) {
	if c.GetRespHeader(report.RateLimit) == "" && c.GetRespHeader(report.RateLimitPolicy) == "" {
		g.partitions.setRateLimit(c.Set, key, v)
	}
}
