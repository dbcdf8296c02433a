// Package redistest gives tests real Redis: one server ([Alone]), a master watched by
// sentinels ([Sentinel]), a [Cluster], and a [Proxy] that loses replies on purpose.
//
// A server is ready in some ten milliseconds, Sentinel in a second and a Cluster in two; a
// failover takes some seconds. All of it ends with the test.
package redistest
