// Package rules decides about a send by several limits at once: those of the mailbox, of the
// visitor's address, of the caller, of a provider's quota.
//
// Each [Rule] counts sends by one trait ([By]) with a throttle.Limiter. A [Set] admits a send only if
// every rule admits it, and a refusal by one rule uses no quota of the others: they are refunded.
//
//	decision, err := set.Take(ctx, send, throttle.NewID())
//	switch {
//	case err != nil:
//		// no answer: do not send
//	case !decision.Allowed:
//		// decision.Rule and decision.Verdict say which limit was reached and how long to wait
//	default:
//		// wait for decision.Delay and send; if the email certainly never left,
//		// set.Release(ctx, decision.Charges)
//	}
//
// An admitted send asks each rule once. Rules are looked at before they are charged where one may be
// expected to refuse, so that a flood of refused sends writes nothing, and where a charge could not be
// refunded. Between a charge and its refund a simultaneous send may be refused because of quota that is
// free again a moment later; no send is admitted beyond a limit.
//
// A rule with a [Budget] counts a send until its code is right: [Set.Unverified] writes what a right code returns, to be
// kept with the code, and [Set.Verified] and [Set.Release] return it.
//
// A position in a queue (throttle.LeakyBucket) has been promised to the sends behind it and
// cannot always be refunded. Queues are charged last and one at a time, the one that all sends
// share at the end.
package rules
