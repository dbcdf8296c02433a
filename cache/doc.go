// Package cache is a map that keeps what it was given until it expires.
//
// A [Disk] is the truth: Badger, in a directory or in memory. A [Map] is a part of it
// with values of one type, and Ristretto in front of it to answer fast. Ristretto
// alone would not do: it drops writes under load and evicts what is still wanted,
// and each value it forgets here would be a mailbox that may be mailed again at
// once. So a write is on disk before [Map.Update] returns, and what Ristretto has
// forgotten is read back. A flood, an eviction, a restart and a killed process lose
// nothing that was acknowledged. A power cut may, unless [DiskOptions] say Sync.
//
// Reads of what Ristretto remembers take no lock and no memory: nearly all are answered by
// a table in front of it, which Ristretto is told of now and then. What a codec can put in
// two words lies in the table itself, and is told at a [Map.Glance]. Writers of one key
// wait for each other as long as their contexts last, and Update holds them apart for as
// long as its edit runs. A reader never sees a value older than one whose Update had
// returned before.
//
// The clock is handed in, and read when a caller's turn has come. A key is found while it
// shows less than the expiry; what has expired is cleared away an hour later, or more. That hour
// goes by the machine's clock: what was written before it is set forward by more than an hour and
// the lifetime is not found any more.
//
// What fails is an error and not "not found", but for what the drive changes in a table while
// the disk is open, which Badger does not tell from what was never there. One table a second is
// read again to find that, and then whatever has to ask the disk is [ErrCorrupt]. Until then a
// key in it can be "not found", and a table that is rewritten before loses it.
//
// Damage to the files is looked for by [Open], which then changes nothing and says ErrCorrupt;
// so it does when the newest log is gone that a process left that was killed, unless that log
// was only made in the second before. Only a log that breaks off is repaired, by keeping what
// comes before, and reported to the log. A disk that is nearly full refuses writes with
// [ErrFull] and goes on answering reads; [Disk.Ready] tells whether a write would work.
package cache
