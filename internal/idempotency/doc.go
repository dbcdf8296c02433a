// Package idempotency makes a request that is sent twice take effect once.
//
// A network can fail after a request was done and before its answer arrived. The caller
// cannot know, and sends the request again. So the caller names the request by a key of its
// own making, in the header field Idempotency-Key (draft-ietf-httpapi-idempotency-key-header),
// and sends it again under the same key:
//
//	outcome, err := requests.Begin(ctx, name, fingerprint)
//	switch {
//	case err != nil:                             // unknown: do nothing, and Abandon
//	case outcome.State == idempotency.InFlight:  // the first request is in progress
//	case outcome.State == idempotency.Replay:    // give outcome.Answer, byte for byte the first one
//	case outcome.State == idempotency.Mismatch:  // the key was used for another request
//	case outcome.State == idempotency.Unknown:   // it may have been done; its answer is lost
//	}
//	// Started. Prepare everything that can be undone, then
//	ok, err := requests.HandOver(ctx, outcome.Lease)
//	// if ok, take the step that cannot be undone, and then
//	requests.Finish(ctx, outcome.Lease, answer) // or Abandon, if certainly nothing was done
//
// A key belongs to the caller that used it; see [Name]. Requests are compared by their
// [Fingerprint]; their text is not kept.
//
// # Which answers are kept
//
// Finish keeps the answer for 24 hours. Abandon frees the key, so that the same
// request can be tried again. The answer to what was done, or may have been done, is kept. A 429, or a 503 of
// what was certainly not done, is not: kept for a day, it would block the retry that it asks for.
//
// # Crashes
//
// Begin grants a lease, which must be longer than a request can take. If the process is killed, the next Begin after the lease depends on what is on
// record. A request that was only begun is started again, and Outcome.Previous names the
// admission that the killed attempt may have left charged. A request that was handed over is
// Unknown for as long as an answer would have been kept: its email may have left.
//
// # Outages
//
// A [keyed.Store] may decide alone while the shared records are unavailable, and merge its own into
// them afterwards with [Merge]. Two nodes that decide alone do not know of each other, so one key
// can then send two emails, and both are charged. A node alone never overrules what it knows: it
// does not hand over a lease that the shared records granted, nor start again what another attempt
// has begun.
//
// # Time
//
// All times are int64 milliseconds, by the clock of the store. Records expire to the millisecond.
package idempotency
