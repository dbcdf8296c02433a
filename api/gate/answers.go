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
	limits := wire.Limits(v, "")
	return wire.Encode(struct {
		wire.Problem
		wire.Verdict
		Violated []string `json:"violated-policies"`
	}{
		wire.Problem{Type: wire.Quota, Title: wire.QuotaTitle, Status: fiber.StatusTooManyRequests, Detail: wire.Reached(v, "these requests", "The next one is let through")},
		wire.NewVerdict(rule, v, limits), wire.Violated(limits),
	})
}

// retry is how many milliseconds a caller who could not be counted is told to wait.
const retry = 1000

// Failed is the answer where Options.Failed is nil. It does not show the error: an
// Options.Failed of your own can log that, and then answer by this.
func Failed(c *fiber.Ctx, err error) error {
	const status = fiber.StatusServiceUnavailable
	if errors.Is(err, ErrTurn) {
		return problem(c, status, retry, ours("busy", "Too many requests waiting", status, "The turn of this request did not come in time."))
	}
	return problem(c, status, retry, undecided())
}

// undecided is the body of a 503 where the limiter failed.
func undecided() []byte {
	return ours("store-unavailable", "Storage unavailable", fiber.StatusServiceUnavailable,
		"Whether this request may be let through cannot be decided now.")
}

func ours(name, title string, status int, detail string) []byte {
	return wire.Encode(wire.Problem{Type: wire.Ours + name, Title: title, Status: status, Detail: detail})
}

func unknown(c *fiber.Ctx) error {
	const status = fiber.StatusUnauthorized
	return problem(c, status, 0, ours("unauthorized", "Nobody is signed in", status, "Sign in first."))
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
	if c.GetRespHeader(wire.RateLimitHeader) != "" || c.GetRespHeader(wire.RateLimitPolicyHeader) != "" || len(v.Tiers) == 0 {
		return
	}
	limits := wire.Limits(v, "")
	c.Set(wire.RateLimitPolicyHeader, wire.RateLimitPolicy(limits))
	c.Set(wire.RateLimitHeader, wire.RateLimit(limits))
}
