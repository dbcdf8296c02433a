// Package cluster is the throttle.Limiter of many processes. It keeps what is on record
// in Redis: standalone, behind Sentinel or in a Cluster.
//
// One mailbox is one sorted set, and one script looks and records in one step on the
// server, by the server's clock. A denial only reads. A decision repeated with the
// same reservation is not charged twice, so a call whose answer was lost can be
// made again; the client library never does so by itself.
//
//	store, err := redisstore.Open(redisstore.Options{URL: "redis://localhost:6379"})
//	...
//	defer store.Close()
//	mailboxes, err := cluster.New(store, throttle.DefaultPolicy())
//	...
//	meters, err := cluster.NewMeters(store)
//	...
//	visitors := meters.Limiter("visitors", minute) // a meter of package meter
//
// A [Limiter] admits by a policy, and Limiter.Tiers by further ones. [Meters] count by the
// meters of package meter on the same store. A meter's state is one string for each key, and for
// each algorithm there is a script that decides as its meter in Go would: the meter
// then spells the verdict, and should the two ever differ, that is an error and no yes. Of
// one that remembers hundreds of sends mostly the first half KB is read, however many.
// Every key expires when it has nothing more to say.
//
// Package redisstore has the connections, and says what holds for every call: that it
// answers within Options.Timeout, and what a failover can forget. With Options.Confirm an
// admission is a yes only when that many replicas have it.
package cluster
