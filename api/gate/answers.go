package gate

import (
	"errors"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/throttle"
)

func (g *gate) refuse(c *fiber.Ctx, v throttle.Verdict) error {
	return problem(c, fiber.StatusTooManyRequests, wire.Wait(&v), refusal(g.Name, &v))
}

// refusal returns the body of a 429.
func refusal(rule string, v *throttle.Verdict) []byte {
	limits := wire.Limits(v, "")
	return wire.Encode(struct {
		wire.Problem
		wire.Verdict
		Violated []string `json:"violated-policies"`
	}{
		wire.Problem{Type: wire.Quota, Title: wire.QuotaTitle, Status: fiber.StatusTooManyRequests, Detail: wire.Reached(v, "these requests")},
		wire.NewVerdict(rule, v, limits), wire.Violated(limits),
	})
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
	p := wire.Problem{Type: wire.Ours + "store-unavailable", Title: "Storage unavailable", Status: fiber.StatusServiceUnavailable,
		Detail: "Whether this request may be let through cannot be decided now."}
	if errors.Is(err, ErrQueue) {
		p.Type, p.Title, p.Detail = wire.Ours+"busy", "Too many requests waiting", "This request has waited in a queue until its time was over."
	}
	return wire.Encode(p)
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
	if c.GetRespHeader(wire.RateLimitHeader) == "" && c.GetRespHeader(wire.RateLimitPolicyHeader) == "" {
		g.partitions.setRateLimit(c.Set, key, v)
	}
}
