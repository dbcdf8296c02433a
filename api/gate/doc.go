// Package gate is a middleware, for Fiber v2 ([Fiber]) and for net/http ([HTTP]), that limits requests
// by visitor, or by another key, with a throttle.Limiter. Both do the same.
//
//	limit, err := throttle.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 30, Window: time.Minute}, 60)
//	...
//	protect, err := gate.Fiber(gate.Options[*fiber.Ctx]{Limiter: local.New(store.Table("requests"), limit)})
//	...
//	app.Post("/login", protect, login)
//
// A refusal is answered as mailgate does: 429 with the limit, the exact wait in milliseconds
// and the state of every limit, in JSON and in the RateLimit headers. Other answers have the
// headers as well, so that a client can slow down before it is refused. The partition key pk in
// them is a hash of what is counted, under a secret that each process makes anew.
//
// When the limiter fails the answer is 503, unless Options.Failed says otherwise.
//
// # Two gates on a route
//
// A request that the second gate refuses has been counted by the first. To change that, let
// the first refund it:
//
//	gate.Options[*fiber.Ctx]{Limiter: perAddress, Release: func(status int) bool { return status == 429 }}
//
// # A queue
//
// With a LeakyBucket a request is held back for the verdict's Delay, or until its context ends.
// Fiber v2 ends none, so set a deadline in front, which also holds for the handler; net/http ends it
// when the client has gone:
//
//	app.Use(func(c *fiber.Ctx) error {
//		ctx, cancel := context.WithTimeout(c.UserContext(), 2*time.Second)
//		defer cancel()
//		c.SetUserContext(ctx)
//		return c.Next()
//	})
package gate
