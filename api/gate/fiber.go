package gate

import (
	"errors"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
)

// Fiber makes the middleware for Fiber v2. Routes that use it are counted together.
func Fiber(o Options[*fiber.Ctx]) (fiber.Handler, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return func(c *fiber.Ctx) error {
		p, err := o.begin(c.UserContext(), c, c.Context().RemoteAddr().String())
		if err != nil {
			return o.Failed(c, err)
		}
		if !p.Allowed {
			p.show(c.Set) // through Fiber, so that a middleware in front can read the fields
			return o.Refuse(c, p.Verdict)
		}
		status := fiber.StatusInternalServerError // of a panic, which reaches the middleware that recovers it
		defer func() {
			p.end(status)
			if c.GetRespHeader(report.RateLimit)+c.GetRespHeader(report.RateLimitPolicy) == "" {
				p.show(c.Set)
			}
		}()
		err = c.Next()
		status = statusOf(c, err)
		return err
	}, nil
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
