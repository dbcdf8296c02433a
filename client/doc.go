// Package client asks a running mailgate, for back ends written in Go. It needs nothing
// but the standard library, and importing it brings nothing else along.
//
//	gate, err := client.New("https://mailgate.internal", os.Getenv("GATE_KEY"), client.Options{})
//	…
//	sent, err := gate.SendCode(ctx, client.Send{Email: form.Email, ClientIP: visitor})
//	var wait *client.Wait
//	switch {
//	case errors.As(err, &wait):
//		// not yet: wait.Rule, wait.Limit, wait.Wait
//	case err != nil:
//		// see below
//	default:
//		// mailed; sent.Wait is when the next one may be
//	}
//
// # A nil error is a yes
//
// Whatever mailgate does not say yes to is an error: a mailbox that has to wait, an action
// that is refused, a code that is wrong. So a caller who looks at nothing but the error
// is never too kind. Four types say what it was, for errors.As, and a value for errors.Is:
//
//   - [Wait]: a limit is reached. It says which and for how long.
//   - [Problem]: mailgate, or something in front of it, said no. Its Kind says why. (A code
//     that is wrong or too old is a [CodeIncorrect] or [ErrCodeExpired].)
//   - [NoAnswer]: nobody answered, so nobody knows what was done.
//   - [ErrAnswer]: a yes came that cannot be read, so nobody knows either.
//   - [Unsettled], of a send alone and beside one of these: the mail may have been sent,
//     and the same send under the same key finds out.
//
// What was asked for may have been done after
//
//   - a NoAnswer, unless its NotAsked is set,
//   - an ErrAnswer,
//   - a Problem of something in front of mailgate, with a Status of 500 or more,
//   - a Problem of mailgate's own that is a fault (500) or a [StoreUnavailable]; of a send
//     the latter says that no mail was sent.
//
// Mailgate's other problems say what was done by that attempt; of a take or a release an
// earlier one may have done it.
//
// No error has the API key, a mail address, or a text of another's making in its message,
// so errors may be logged. Fields for people, such as [Problem.Detail], may be shown.
//
// # Asking again
//
// A network breaks after a mail was sent and before that was said. So [Client.SendCode]
// names its request by an idempotency key, and asks again under the same key: mailgate
// then does not send a second mail, but tells what became of the first. It is asked
// again
//
//   - when the connection broke or nobody listened,
//   - after a 503, and after a 502, 503 or 504 of something in front of mailgate,
//   - after a 409 which says that the first request is still at work,
//
// and after nothing else. "Nobody knows" (504, delivery-unknown) is final: mailgate never
// sends such a mail again, whoever asks. Where the attempts end before it is known whether
// the mail was sent, the error is an [Unsettled], with the key to go on under; a new key
// could make a second mail. [Send.Key] lets a caller go on later, from a job queue or after
// a restart.
//
// An action is taken under such a key too. What only looks is asked again just as well. What
// counts and has no key (checking a code, resetting) is asked again only where nobody listened,
// or where mailgate itself said 503. That says that nothing was done, but for one kind: where
// the history failed ([StoreUnavailable]) a guess at a code may have been counted, and is not
// made again. Part of a reset may be done then; it is made again, which does no harm.
//
// Before each repetition there is a pause, twice as long as the last and with some chance
// in it, on top of what a Retry-After asks for. A Retry-After longer than
// [Options.MaxPause] ends the attempts, so that a visitor is told rather than kept.
//
// # Whom the key is shown
//
// The server of the base URL alone. Redirects are not followed, and the environment's
// proxies are not used. Answers are read up to 1 MiB.
package client
