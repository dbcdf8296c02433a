package api

import "github.com/gofiber/fiber/v2"

// cors lets pages from anywhere read the answers about countdowns. No cookie or key comes with
// such a request, and the answer is for any holder of the URL. Fiber's own middleware sends the
// headers only to requests with an Origin, but the script is cached for those without one, too.
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
