// Package outage lets a node go on alone while the history that it shares with others
// cannot be reached.
//
// Each part that keeps something there is wrapped by one that also knows the node's own:
//
//	watch, err := outage.NewWatch(outage.Options{…})
//	mailboxes := watch.Historian("mailbox", day, shared, own)
//	codes := watch.Book(sharedBook)
//	watch.Start()
//	…
//	watch.Close(ctx)
//
// # Together
//
// While the shared history answers, it decides. The node keeps one of the admissions that
// it made itself, in its own history, at the shared one's times. Where its disk hangs nobody
// waits for that: what is not noted soon counts as missing until it is.
//
// # Alone
//
// When there is no answer, the own history decides, and the verdict says so: Degraded. What
// it admits is a debt to the shared history, and so is what is given back meanwhile. Of N
// nodes each goes by its own, so a mailbox gets at most N times its limit, and only while
// the outage lasts. Each call still asks the shared history first, so that of several servers
// those that are well go on to decide for all.
//
// A node has nothing to go on with if its own history is in memory and it has not met the
// shared one, with all its parts, since it started. It answers throttle.ErrUnavailable, or a
// process that crashes again and again in an outage would mail without bound. So does a
// limiter while some of its admissions are missing on this node's disk: until the disk takes
// them, or they have left the longest window. That some are missing is noted, too, as soon as
// the disk takes it; a process that ends before has forgotten it.
//
// # Back
//
// The [Watch] asks again and again. What is owed is then written, once and with its
// original times, and only then is the node healthy again. A key that somebody asks about
// is settled before its next decision. Debts are on the node's disk: where that is a
// directory, a node that was killed in an outage pays when it is back. Debts that nobody needs
// any more are dropped unpaid, also while the shared history is away. There may be only so
// many: a call that would owe one more gets throttle.ErrUnavailable, as where the disk is full.
//
// A step whose reply was lost may have been taken; nobody knows. So it is never taken back
// by silence: what was admitted is recorded under its id, which changes nothing where it is
// on record, and what was not is released. For a code that the shared book may have been told of
// that book alone answers, and telling it once more changes nothing.
package outage
