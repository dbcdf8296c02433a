package cache

import (
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Where an int has 32 bits Badger writes tables that nobody can read, and lets go of the logs
// that had it right. So this compiles where it has 64.
const _ int = 1 << 32

// memTableSize is how much Badger collects in memory, and in a log, before it writes
// a table. Three at most are in being: one that fills, one that waits and one that is
// being written.
const (
	memTableSize = 2 << 20
	memTables    = 3
)

// settings trims Badger from its default of hundreds of megabytes to what many small
// values need. Values stay beside their keys, uncompressed, so that the operating
// system's page cache is the only other copy. Small tables matter most: a compaction
// holds a dozen half-built ones in memory.
func settings(o DiskOptions) badger.Options {
	dir := o.Dir
	if dir == Memory {
		dir = ""
	}
	return badger.DefaultOptions(dir).
		WithInMemory(o.Dir == Memory).
		WithSyncWrites(o.Sync).
		WithLogger(badgerLog{o.Log}).
		WithDetectConflicts(false). // a Map holds writers of one key apart
		WithMetricsEnabled(false).
		WithMemTableSize(memTableSize).
		WithNumMemtables(memTables - 2).
		WithBaseTableSize(512 << 10).
		WithNumLevelZeroTables(4).
		WithNumLevelZeroTablesStall(12).
		WithNumCompactors(2).
		WithValueThreshold(maxValue + 1).
		WithValueLogFileSize(1 << 20). // stays empty
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithChecksumVerificationMode(options.OnBlockRead)
}

// Badger would put longer values into a log that nobody clears, and would spell out
// a longer key in its error.
const (
	maxKey   = 32 << 10
	maxValue = 256 << 10
)
