// Package throttle decides whether somebody may do something once more: whether a mailbox
// may be sent one more mail, an account may try one more password, a visitor may ask one more
// time. What is counted is a key, which is any text, and what is admitted is called a send,
// whatever it is.
//
// A [Policy] is a list of tiers, each a number of sends in a length of time:
//
//	minute=1/60s,hour=5/1h,day=10/24h
//
// The rule is exact to the millisecond. A send admitted at t is inside a window w
// at the moment now when now-t < w. A key is admitted when every tier has fewer sends
// inside its window than its limit. Only an admission is recorded, so asking too often
// never makes the wait longer.
//
// [Decide] is the whole rule, a pure function of a policy, a [History] and the
// clock. Its answer is a [Verdict]: yes or no, the tier that makes the next send
// wait longest, how many milliseconds that is, and how every tier stands. One
// millisecond before the wait is over the answer is still no; when it is over the
// answer is yes.
//
// A [Limiter] keeps the histories and lets only one decision at a time change one.
// Whoever sends asks it first, and gives back what certainly never happened:
//
//	id := throttle.NewID()
//	verdict, err := limiter.Take(ctx, mailbox, id)
//	switch {
//	case err != nil:
//		// nobody knows: do not send
//	case !verdict.Allowed:
//		// tell the user verdict.Limit and verdict.Wait: do not send
//	default:
//		// where a LeakyBucket counts, hold it back for verdict.Delay first; else that is 0
//		// send; if the mail certainly never left, limiter.Release(ctx, mailbox, id)
//	}
//
// # Where it is counted
//
// There are three homes, for a policy and for the other ways to count, such as a token
// bucket, which are the meters of package throttle/meter. All give the same answers, and
// throttle/throttletest is the suite that says so.
//
//	                   by a policy                 by a meter
//	throttle/memory    memory.NewTiers(p, o)       memory.New(m, o)
//	  this process     zero policy: the default    no meter: a panic
//	throttle/local     local.New(disk, o)          local.NewMeters(disk, o), .Limiter(name, m)
//	  also its disk    zero policy: an error       no meter: a panic
//	throttle/cluster   cluster.New(store, p)       cluster.NewMeters(store), .Limiter(name, m)
//	  Redis            zero policy: an error       no meter: a panic
//
// To have no disk or no store is an error.
//
// # Time
//
// All times are int64 milliseconds since 1970, all lengths of time int64 milliseconds, also a
// tier's Window, which is time.Minute.Milliseconds() and not int64(time.Minute). The other
// way, time.Duration(verdict.Wait) * time.Millisecond is a wait. Nothing in this package reads
// a clock: the moment is an argument.
//
// # For those who write a store
//
// Who limits needs a Policy, a Limiter and its Verdict, [NewID] and the errors. The rest is for
// who writes a limiter of his own: [CheckCall], [CheckKey], [CheckRecord], [WrongID],
// [Unavailable], [Unchanged] and [Unproven] for its arguments and errors; [Admitted],
// [Policy.Spell], [Policy.SpellOne], [Policy.SpellAgain], [Reading.Spell] and [Refusal] for
// its verdicts; [IDs] and [ManyIDs] to see quickly who is not on record; [Recorder], [Surveyor]
// and [History.Including] for histories that meet again after they were apart.
package throttle
