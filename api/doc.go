// Package api serves mailgate's HTTP API.
//
// # Structure
//
// routes.go names every route with its steps and its handler. handler.go reads the body of a route into a
// struct (body.go), whose validate tags check it (validate.go). It makes one call to what decides, and answers
// with a struct. Package internal/report puts decisions into words. An error becomes an answer in one place, by
// the table in problem.go. send.go maps the errors of package delivery to it. retry.go repeats the answers to
// sends under an Idempotency-Key.
//
// All middleware shares one [request]. accessLog makes it first, and writes the log line and the metrics
// last. share.go bounds the requests in progress, auth.go checks keys, and ratelimit.go bounds lookups and the
// requests of operators. Wrong keys are counted by the address that they come from; a valid key is never refused
// for them.
//
// What is in force, delivery.Live, can be replaced while the server serves. A request keeps what it began with.
//
// # What stays secret
//
// No answer holds a stack, a path, a library's error text or a secret; the cause of an internal
// error is in the log under the request's id. No log line holds an address, which shows as a
// short hash, a code or a key.
package api
