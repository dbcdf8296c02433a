// Package throttle decides whether an event is within its limits, such as an email to a mailbox, a login or a
// visitor's request. Every event is called a send here, and is counted by a key: any text of 1 to 1024 bytes.
//
// A [Limiter] counts sends by key: an [Algorithm] decides, and a [Home] keeps the records. One in
// memory takes a line, here with 1 send in 60 s, 5 in 1 h and 10 in 24 h:
//
//	limiter := local.Memory(throttle.DefaultPolicy())
//	verdict, err := limiter.Take(ctx, "alice@example.com")
//
// Package throttle/local also keeps the records on disk, and package throttle/cluster in Redis, for
// several processes. All give the same answers.
//
// # Charge first, then send
//
// Take charges the send before it is made. Release refunds it if it certainly never
// happened:
//
//	verdict, err := limiter.Take(ctx, mailbox)
//	switch {
//	case err != nil:
//		// no answer: do not send
//	case !verdict.Allowed:
//		// do not send: verdict.Limit was reached, try again after verdict.RetryAfter()
//	default:
//		// send; after a failure before anything left:
//		limiter.Release(ctx, mailbox, verdict.Admission)
//	}
//
// # Which algorithm
//
// With a limit L in a window W:
//
//	               admits at most                    keeps for each key
//	Policy         L in any W, in several tiers      each send, with its id
//	SlidingWindow  L in any W; a send may count      a count for each part of the window
//	               longer, by less than one part
//	FixedWindow    L in each full window, 2 L        one count
//	               across an edge
//	TokenBucket    the burst, then L in each W       one level
//	LeakyBucket    one at a time, at even distances  one level
//
// A Policy suits a mailbox: few sends, several windows, an exact countdown. It charges an id
// once, so that a TakeID can be repeated. The others are counters: they keep no ids and cost the
// same whatever the limit. A Take that is repeated charges a counter twice.
//
// # Time
//
// Moments are int64 milliseconds since 1970 and waits are int64 milliseconds; [Verdict.RetryAfter]
// is a time.Duration. Nothing in this package reads a clock. [Algorithm] says what holds when the clock steps back.
package throttle
