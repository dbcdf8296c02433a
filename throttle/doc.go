// Package throttle decides whether a mailbox may be sent one more mail.
//
// A [Policy] is a list of tiers, each a number of sends in a length of time:
//
//	minute=1/60s,hour=5/1h,day=10/24h
//
// The rule is exact to the millisecond. A send admitted at t is inside a window w
// at the moment now when now-t < w. A mailbox may be sent to when every tier has
// fewer sends inside its window than its limit. Only an admission is recorded, so
// asking too often never makes the wait longer.
//
// [Decide] is the whole rule, a pure function of a policy, a [History] and the
// clock. Its answer is a [Verdict]: yes or no, the tier that makes the next send
// wait longest, how many milliseconds that is, and how every tier stands. One
// millisecond before the wait is over the answer is still no; when it is over the
// answer is yes.
//
// A [Limiter] keeps the histories and lets only one decision at a time change one.
// Whoever sends mail asks it first, and gives back what certainly never left:
//
//	id := throttle.NewID()
//	verdict, err := limiter.Take(ctx, mailbox, id)
//	switch {
//	case err != nil:
//		// nobody knows: do not send
//	case !verdict.Allowed:
//		// tell the user verdict.Limit and verdict.Wait: do not send
//	default:
//		// send; if the mail certainly never left, limiter.Release(ctx, mailbox, id)
//	}
//
// Package throttle/memory keeps the histories in this process, throttle/local also on its
// disk, throttle/cluster in Redis. All give the same answers, and throttle/throttletest is
// the suite that says so. Other ways to count, such as a token bucket, are in package
// throttle/meter, with the same three homes.
//
// All times are int64 milliseconds since 1970, all lengths of time int64
// milliseconds. Nothing in this package reads a clock: the moment is an argument.
package throttle
