// Package cache keeps bytes by key until they expire.
//
// A [Store] is a directory with recently used values in memory in front of it, or memory
// alone. A [Table] is a part of it with keys of its own. [Table.Update] changes one value by
// one step; it returns when the change is durable, so what was acknowledged survives kill -9
// and, with Options.Sync, a power cut.
package cache
