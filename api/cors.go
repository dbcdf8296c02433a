package api

import "github.com/gofiber/fiber/v2"

// cors lets pages of any origin read countdowns, which are for any holder of the URL and need no
// cookie or key. Fiber's own middleware sets the headers only for requests with an Origin, but a
// cached script is used for all.
func cors(c *fiber.Ctx) error {
	set(c, "Access-Control-Allow-Origin", "*")
	set(c, "Access-Control-Expose-Headers", "*")
	set(c, "Cross-Origin-Resource-Policy", "cross-origin")
	if c.Method() == fiber.MethodOptions {
		set(c, "Access-Control-Allow-Methods", "GET, HEAD")
		set(c, "Access-Control-Allow-Headers", "*")
		set(c, "Access-Control-Max-Age", "86400")
	}
	return c.Next()
}
