// Package idempotency lets a request that is sent twice be done once.
//
// A network breaks after a request was done and before its answer arrived. The caller
// cannot know, sends the request again, and somebody gets two mails. So the caller names
// the request by a key of its own making, in the field Idempotency-Key of the request
// (draft-ietf-httpapi-idempotency-key-header), and sends it again under the same key:
//
//	outcome, err := keeper.Begin(ctx, name, fingerprint)
//	switch {
//	case err != nil:
//		// nobody knows: do not do it
//	case outcome.State == idempotency.Started:
//		// do it, and then
//		keeper.Finish(ctx, outcome.Lease, answer) // or Abandon
//	case outcome.State == idempotency.Replay:
//		// give outcome.Answer, byte for byte the first one
//	case outcome.State == idempotency.InFlight:
//		// the first one is still at it: 409
//	case outcome.State == idempotency.Mismatch:
//		// the key was used for another request: 422
//	}
//
// A key belongs to the caller that used it, so callers need not know of each other's; see
// [Name]. What was asked is known by its [Fingerprint], never by its text.
//
// # Which answers are kept
//
// Whoever asked a [Keeper] to begin says so at the end: Finish keeps the answer, by
// default for 24 hours, and Abandon frees the key, so that the same request can be tried
// again. What was done is kept, and what may have been: done again it would be done twice.
// A 429, or a 503 of what was certainly not done, tells of a moment and not of the request,
// and kept for a day it would lock out the very retry it asks for.
//
// # Crashes
//
// A process can end between Begin and Finish. So Begin gives a lease, by default of 60
// seconds: until it ends the key is in flight, afterwards it is free. A lease has to be
// longer than a request can take. If a request takes longer all the same, its answer is
// still kept unless somebody else has begun in the meantime; the token in the [Lease]
// tells the two apart, and a late Finish never replaces what a newer holder has recorded.
//
// # Time
//
// All times are int64 milliseconds, and the clock is the keeper's. At the end of its lease
// or of its life a record is gone, to the millisecond. A clock that steps back only makes
// records last longer.
package idempotency
