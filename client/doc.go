// Package client is the Go client of a mailgate server. It uses the standard library only.
//
// # Errors
//
// A nil error means that the request was granted. Otherwise errors.As finds one of these:
//
//   - a [LimitError] says which limit was reached and how long to wait
//   - an [APIError] is any other answer, such as one of kind [CodeIncorrect]
//   - a [NetworkError] says that there was no answer
//
// An [UncertainError] around one of them says that the request may still have taken effect. Without it nothing was
// sent or counted, except with an APIError of kind [CodeIncorrect], [RecipientRejected] or [DeliveryUnknown].
//
// Error texts contain no key, no email address and nothing that the server wrote, so they may
// be logged. Fields such as [APIError.Detail] are for people.
//
// # Safe retries
//
// [Client.Send] and [Client.Take] name their request by an Idempotency-Key. They repeat it under that key if the
// connection failed, after a 503 or a proxy's 502 or 504, and while the first request is in progress. So one
// call sends at most one email. [Mail.Key] continues a send
// later, from a job queue or after a restart. [Client.Verify] and [Client.Release] are repeated
// only if mailgate certainly did nothing. Redirects are not followed, so the key reaches one
// server only.
package client
