// Package gate is a Fiber middleware that lets through as many requests as a
// throttle.Limiter admits, for each visitor, user or whatever is to be counted apart.
//
//	limit, err := meter.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 30, Window: 60_000}, 60)
//	...
//	protect, err := gate.New(gate.Options{Limiter: memory.New(limit, memory.Options{})})
//	...
//	app.Post("/login", protect, login)
//
// A request too many is answered as mailgate itself does: 429 with the limit, the exact
// wait in milliseconds and how every limit stands, in JSON and in the RateLimit headers.
// Answers to those let through have the headers as well, so that a client can slow down
// before it is refused; not if Quiet is set.
//
// Where nothing can be decided, because the limiter's store cannot be reached, the answer
// is 503: a gate that cannot count does not stand open, unless Failed says so.
package gate
