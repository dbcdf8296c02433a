// Package cluster is the throttle.Limiter of many processes. It keeps what is on record
// in Redis: standalone, behind Sentinel or in a Cluster.
//
// One mailbox is one sorted set, and one script looks and records in one step on the
// server, by the server's clock. A denial only reads. A decision repeated with the
// same reservation is not charged twice, so a call whose answer was lost can be
// made again; the client library never does so by itself.
//
// On the same connections Limiter.Meter counts by the meters of package meter, and
// Limiter.Tiers by further policies. A meter's state is one string for each key, and for
// each algorithm there is a script that decides as its meter in Go would: the meter
// then spells the verdict, and should the two ever differ, that is an error and no yes.
// Every key expires when it has nothing more to say.
//
// Many callers share few connections: what is asked at the same time travels in one
// pipeline. Every call answers within Options.Timeout, whatever Redis does.
//
// Redis acknowledges a write before its replicas have it, so a failover can forget the
// last admissions. With Options.Confirm an admission is a yes only when that many
// replicas have it. Redis must not evict: run it with maxmemory-policy noeviction.
package cluster
