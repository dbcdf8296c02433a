// Package standby lets a node continue alone while Redis is away.
//
// Each limiter and keyed store of Redis is wrapped together with the node's own, which is on
// its disk:
//
//	clock := standby.NewClock()
//	store, err := cache.Open(cache.Options{Dir: dir, Now: clock.Now})
//	node, err := standby.New(standby.Options{Prober: prober, Store: store, Clock: clock, Log: log})
//	mailboxes := node.Limiter("mailbox", policy, sharedLimiter, ownLimiter)
//	codes := node.Store("codes", sharedStore, ownStore, verify.Merge, false)
//	node.Start()
//	…
//	node.Close(ctx)
//
// A prober says whether a master is away; a call that fails before that is
// throttle.ErrUnavailable. While a master is away, its keys are decided by the node's own
// records, and each change is in the journal, on disk, before the answer. Each of N nodes
// uses its own records, so a key gets at most N times its limit.
//
// When the master answers again, Redis decides, and the node mirrors what Redis admitted into its own records. The
// entries of a key are synced to Redis before Redis decides about it, and a worker empties the journal. A key
// waits for no other: if all were decided alone until the journal is empty, earlier codes and resets would be 503
// for as long, and one entry that cannot be synced would prevent the end. Those of a key are applied in their
// order, each by the algorithm that admitted it. An entry is sent until Redis confirms it, so it may be sent
// twice: exact limiters ignore an id on record, counters count it twice, and values are merged. A counter's
// release is sent at most once.
//
// A node does not continue alone while its own records lack an admission that still counts, or
// when the journal is full.
package standby
