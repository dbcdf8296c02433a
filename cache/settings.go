package cache

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

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

// badgerLog passes on Badger's warnings and errors.
type badgerLog struct{ log *slog.Logger }

func (b badgerLog) Errorf(format string, args ...any)   { b.say(slog.LevelError, format, args) }
func (b badgerLog) Warningf(format string, args ...any) { b.say(slog.LevelWarn, format, args) }
func (b badgerLog) Infof(format string, args ...any)    { b.say(slog.LevelDebug, format, args) }
func (b badgerLog) Debugf(string, ...any)               {}

func (b badgerLog) say(level slog.Level, format string, args []any) {
	if b.log.Enabled(context.Background(), level) {
		b.log.Log(context.Background(), level, "data directory", "badger", strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}
