// Package api is the HTTP of mailgate: who asks, for which mailbox, and what they
// are told.
//
// A Server is made of what it works with and served on a listener:
//
//	live := api.Live{Rules: set, Actions: actions, Composer: composer}
//	server, err := api.New(api.Options{Live: live, Relay: delivery.FromRelays(relays), ...})
//	go server.Serve(listener)
//	...
//	server.Shutdown(ctx)
//
// A send walks through it in one line: the key, the JSON, the address, the fields of
// the mail, the rules (Take), its turn where a rule lets sends queue, the mail, the relay,
// the answer. What the relay certainly never took is given back to all rules (Release), but
// for the visitor's where it was the recipient who was put off; what it may have taken stays
// charged and is never sent again, also when the caller has gone away.
//
// A send with an Idempotency-Key is done once, however often it is asked for and whoever
// is killed on the way; once.go says how. The codes made here are checked by POST
// /verify-code, under a budget of guesses (package verify). Answers that tell a send's wait
// carry a token by which a visitor's page asks for that of now, GET /countdown/{token}
// (package countdown), and the page's countdown itself is handed out from package web.
//
// What is in force, [Live], can be replaced as one while the server serves. A request
// goes on with what it began with, up to the rules it is given back to.
//
// Beside mail, applications can have whatever else they do limited: POST
// /actions/{action}/take, with peek and release, asks a limiter that the operator has
// named. Lookups and operators' steps are bounded by the middleware of package gate, which
// any Fiber program can use as well, and both write their verdicts with package wire. Wrong
// keys are counted there by the address they come from, and no right one is ever refused
// for them: whoever shares an address with an attacker, such as that of a proxy, must not
// be locked out.
//
// Operators have a page of their own, GET /admin (package web): it looks mailboxes up and
// forgets them by the routes under /admin/, and shows GET /admin/figures as they grow. The
// page needs no key; what it asks does.
//
// # How it is built
//
// A route (routes.go) names a reader, a handler and a writer. The reader makes a typed
// request of what came; the handler decides, and knows nothing of HTTP; the writer
// makes the answer. One adapter (adapter.go) runs them and is the only place that
// touches Fiber for them: it checks the key, copies what outlives the request, catches
// a panic, turns an error into its answer (the table in problem.go) and writes one log
// line and the metrics.
//
// The hot answer is a denial, because that is what abuse gets: it takes no lock here,
// no reflection, no map and no formatting.
//
// # What is never said
//
// No answer holds a stack, a path, a library's error text or a secret; a fault on this
// side is a plain sentence, and its cause is in the log under the request's id. No log
// line holds an address (it shows as a short hash), a code or a key.
package api
