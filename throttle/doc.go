// Package throttle decides whether an event is within its limits: whether a mailbox may be sent
// another email, a login may be attempted again, or a visitor may make another request. Every
// event is called a send here, and is counted by a key: any text of 1 to 1024 bytes.
//
// A [Limiter] counts sends by key. One that keeps its records in this process takes a few
// lines, here with 1 send in 60 s, 5 in 1 h and 10 in 24 h:
//
//	store, err := cache.Open(cache.Options{}) // or Dir: "data", to keep records on disk
//	...
//	limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
//	verdict, err := limiter.Take(ctx, "alice@example.com", throttle.NewID())
//
// Package throttle/cluster keeps them in Redis instead, for several processes, and takes the
// program's own go-redis client. Both give the same answers.
//
// # Charge first, then send
//
// Take charges the send before it is made. Release refunds it if it certainly never
// happened:
//
//	id := throttle.NewID()
//	verdict, err := limiter.Take(ctx, mailbox, id)
//	switch {
//	case err != nil:
//		// no answer: do not send
//	case !verdict.Allowed:
//		// do not send: verdict.Limit was reached, try again in verdict.Wait ms
//	default:
//		// send; after a failure before anything left:
//		limiter.Release(ctx, mailbox, throttle.Admission{ID: id, At: verdict.At})
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
// once, so a Take can be repeated. The others are counters: they keep no ids and cost the
// same whatever the limit. A Take that is repeated charges a counter twice.
//
// # Time
//
// Moments are int64 milliseconds since 1970 and waits are int64 milliseconds, so
// time.Duration(verdict.Wait)*time.Millisecond is a wait. Nothing in this package reads a
// clock. [Algorithm] says what holds when the clock steps back.
package throttle
