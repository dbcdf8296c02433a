// Package api is the HTTP of mailgate.
//
//	live := api.Live{Rules: set, Actions: actions, Composer: composer}
//	server, err := api.New(api.Options{Live: live, Relay: delivery.FromRelays(relays), ...})
//	go server.Serve(listener)
//	...
//	server.Shutdown(ctx)
//
// # How it is built
//
// A route (routes.go) names a reader, a handler and a writer. The reader makes a typed request
// of what came; the handler makes one call to what decides; the writer makes the answer, a
// struct. One adapter (adapter.go) runs them: it checks the key, recovers from a panic, turns an
// error into its answer (the tables in problem.go and send.go), and writes one log line and the
// metrics.
//
// A send is decided and done by package delivery; send.go has its answers. Package verify checks
// codes, and package countdown makes the tokens by which a visitor's page asks how long a wait
// still lasts. Lookups and the steps of operators are bounded by the middleware of package gate,
// which any Fiber program can use. Both write their verdicts with package wire. Wrong keys are
// counted there by the address they come from, and a valid one is never refused for them.
//
// What is in force, [Live], can be replaced as one while the server serves. A request goes on
// with what it began with.
//
// # What is never said
//
// No answer holds a stack, a path, a library's error text or a secret; an internal error is a
// plain sentence, and its cause is in the log under the request's id. No log line holds an
// address, which shows as a short hash, a code or a key.
package api
