package main

import (
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// The sizes of package cache.
const (
	memTableSize = 2 << 20
	memTables    = 3
	maxValue     = 256 << 10
)

// sameSettings are those of package cache, where they are explained. A test compares
// the two.
func sameSettings(dir string) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(nil).
		WithSyncWrites(false).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithMemTableSize(memTableSize).
		WithNumMemtables(memTables - 2).
		WithBaseTableSize(512 << 10).
		WithNumLevelZeroTables(4).
		WithNumLevelZeroTablesStall(12).
		WithNumCompactors(2).
		WithValueThreshold(maxValue + 1).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithChecksumVerificationMode(options.OnBlockRead)
}
