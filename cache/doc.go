// Package cache is a map that keeps what it was given until it expires.
//
// A [Disk] is the truth: Badger, in a directory or in memory. A [Map] is a part of it
// with values of one type, and Ristretto in front of it to answer fast. Ristretto
// alone would not do: it drops writes under load and evicts what is still wanted,
// and each value it forgets here would be a mailbox that may be mailed again at
// once. So a write is on disk before Update returns, and what Ristretto has
// forgotten is read back. A flood, an eviction, a restart and a killed process lose
// nothing that was acknowledged.
//
// Reads of what Ristretto remembers take no lock and no memory. Writers of one key
// wait for each other, and Update holds them apart for as long as its edit runs.
//
// The clock is handed in. A key is found while now is before its expiry; what has
// expired is cleared away later.
package cache
