// Package standby lets a node go on alone while Redis is away.
//
// Each limiter and keyed store of Redis is wrapped together with the node's own, which is on
// its disk:
//
//	clock := standby.NewClock()
//	store, err := cache.Open(cache.Options{Dir: dir, Now: clock.Now})
//	node, err := standby.New(standby.Options{Client: client, Store: store, Clock: clock})
//	mailboxes := node.Limiter("mailbox", policy, sharedLimiter, ownLimiter)
//	codes := node.Store("codes", sharedStore, ownStore, verify.Merge, false)
//	node.Start()
//	…
//	node.Close(ctx)
//
// # Connected
//
// Redis decides. The node mirrors what it was admitted into its own records. A call that
// fails is throttle.ErrUnavailable: one late reply is no outage. What a failed Take may have
// charged is given back, by a release in the journal.
//
// # Away
//
// Only a prober says that a master is away. Then the node's own records decide about its
// keys, and the verdict says Degraded. Of N nodes each goes by its own, so a key gets at most
// N times its limit. What is decided is written to the journal, on disk, before the answer.
// A node does not go on alone while its own records lack an admission that still counts, or
// when the journal is full.
//
// # Returning
//
// When the master answers again, it is told what is in the journal; a key that is asked
// about comes first, so Redis never decides about a key that it does not know all of. An
// entry is told until the answer is heard, so it may be told twice: exact limiters ignore an
// id on record, counters count it twice, and values are merged. A counter's release is told
// at most once. The outage is over when the journal of the master is empty.
package standby
