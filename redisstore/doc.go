// Package redisstore is Redis as several stores share it: one set of connections to a
// server, to a master behind Sentinel or to a Cluster, and what a step on a record needs
// to be right there.
//
// A [Store] is opened once and handed to each package that keeps records in it. A step of
// such a package is a [Script], which looks and writes at one key in one piece, by the
// server's clock:
//
//	call, err := store.Begin(ctx, prefix+key) // the prefix is Below(store.Prefix(), "name")
//	if err != nil {
//		return err // the context had ended
//	}
//	defer call.End()
//	reply, err := call.Ask(script, words...)
//
// The client library repeats nothing by itself. [Call.Ask] and [Call.Decide] run a script
// again when the connection broke before it was answered, so these are for scripts that
// may run twice; [Call.Once] and [Call.DecideOnce] do not. A server that hangs and comes back,
// or that a network reaches late, finds what [Call.Decide] and [Call.DecideOnce] have asked for
// too late, and does not do it.
//
// Many callers share few connections: what is asked at the same time travels in one
// pipeline, one for each master. Every call answers within Options.Timeout, whatever Redis
// does: that it did not is [ErrSilent], and says nothing of the server. Whether a master is away
// is decided by a prober alone (package prober). While it is, calls fail at once with [ErrAway].
// Under [Patience] the calls of one request wait for a server in vain hardly longer than one.
//
// Redis acknowledges a write before its replicas have it, so a failover can forget the
// last ones. With Options.Confirm a script that says so is answered only when that many
// replicas have what it wrote. 256 calls may wait for the replicas of a master at a time;
// one more that would write is not sent, and one that only reads waits for nobody (before
// Redis 7, which cannot tell beforehand, it needs a place too). Redis must not evict: run
// it with maxmemory-policy noeviction. Scripts may use what Redis 6.2 has; the tests run on 7.
//
// Package redistest starts real servers for tests.
package redisstore
