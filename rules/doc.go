// Package rules decides whether a send may go out by several limits at once: those of
// the mailbox, of the visitor's address, of the caller, of a provider's quota.
//
// Each [Rule] counts sends by one of their traits with a throttle.Limiter. A [Set] of
// them admits a send only if every rule says yes, and a rule that says no costs the
// others nothing: all are asked first, and charged only when none objects.
//
//	decision, err := set.Take(ctx, send, throttle.NewID())
//	switch {
//	case err != nil:
//		// nobody knows: do not send
//	case !decision.Allowed:
//		// decision.Rule and decision.Verdict say who objects and for how long
//	default:
//		// send, after decision.Delay; if the mail certainly never left, set.Release
//	}
//
// Between the asking and the charging another send can take the last place. Then the
// rules that were charged are given their places back, and the answer is no. Who asks
// in that moment may be told no because of a place that is free again a moment later;
// nobody is ever told yes because of one.
//
// A place in a queue has been told to those behind it, and so cannot always be given back.
// Queues are charged last and one at a time, the one of all sends at the end. Where one says
// no in between, the turn that was taken in the one before it may pass unused.
package rules
