// Package gate is a Fiber middleware that lets through as many requests as a
// throttle.Limiter admits, for each visitor, user or whatever is to be counted apart.
//
//	limit, err := throttle.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 30, Window: time.Minute}, 60)
//	...
//	protect, err := gate.New(gate.Options{Limiter: local.New(store.Table("requests"), limit, nil)})
//	...
//	app.Post("/login", protect, login)
//
// A request too many is answered as mailgate itself does: 429 with the limit, the exact
// wait in milliseconds and how every limit stands, in JSON and in the RateLimit headers.
// Answers to those let through have the headers as well, so that a client can slow down
// before it is refused; not if Quiet is set.
//
// Where nothing can be decided, because the limiter's store cannot be reached, the answer
// is 503: a gate that cannot count does not stand open, unless Options.Failed says so.
//
// # Two gates on a route
//
// A request that the second gate refuses has been counted by the first. Where it is not to
// be, the first gives it back:
//
//	gate.Options{Limiter: perAddress, Release: func(status int) bool { return status == 429 }}
//
// # A queue
//
// A LeakyBucket holds requests back for as long as their contexts last, and Fiber v2 ends
// none. So a deadline goes in front, which the handler has to keep as well:
//
//	app.Use(func(c *fiber.Ctx) error {
//		ctx, cancel := context.WithTimeout(c.UserContext(), 2*time.Second)
//		defer cancel()
//		c.SetUserContext(ctx)
//		return c.Next()
//	})
package gate
