package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Memory as the directory keeps everything in memory, on the same code path: nothing
// survives the process.
const Memory = ":memory:"

// A Disk keeps bytes by key until they expire. One process at a time has a directory
// open.
type Disk struct {
	db   *badger.DB
	room *room
}

// DiskOptions say where and how carefully to keep things.
type DiskOptions struct {
	Dir string // made if it is not there; or Memory

	// Sync makes each write wait until the drive has it. Without it an acknowledged
	// write survives the end of the process but not a power cut.
	Sync bool

	// Log is told what Badger repairs and what it fails to do. The default is silence.
	Log *slog.Logger
}

// Open opens the directory and repairs what a crash has left behind.
func Open(o DiskOptions) (*Disk, error) {
	inMemory := o.Dir == Memory
	if o.Dir == "" {
		return nil, fmt.Errorf("opening the data directory: no directory was named")
	}
	d := &Disk{room: newRoom(o.Dir)}
	if !inMemory {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("opening the data directory: %w: %w", ErrDisk, err)
		}
		if err := d.room.check(time.Now(), nil); err != nil {
			return nil, fmt.Errorf("opening the data directory: %w", err)
		}
	}
	db, err := badger.Open(settings(o, inMemory))
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", openError(o.Dir, err))
	}
	d.db = db
	return d, nil
}

// settings trims Badger from its default of hundreds of megabytes to what many small
// values need. Values stay beside their keys, uncompressed, so that the operating
// system's page cache is the only other copy.
func settings(o DiskOptions, inMemory bool) badger.Options {
	dir := o.Dir
	if inMemory {
		dir = ""
	}
	return badger.DefaultOptions(dir).
		WithInMemory(inMemory).
		WithSyncWrites(o.Sync).
		WithLogger(badgerLog{o.Log}).
		WithDetectConflicts(false). // a Map holds writers of one key apart
		WithMetricsEnabled(false).
		WithMemTableSize(memTableSize).
		WithNumMemtables(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(8).
		WithNumCompactors(2).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithChecksumVerificationMode(options.OnBlockRead)
}

const memTableSize = 8 << 20

// openError turns Badger's text for a held lock into a kind of error.
func openError(dir string, err error) error {
	if strings.Contains(err.Error(), "Cannot acquire directory lock") {
		return ErrInUse
	}
	if _, statErr := os.Stat(filepath.Join(dir, "MANIFEST")); statErr == nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}

// get hands the value of a key to read, which must not keep it.
func (d *Disk) get(key []byte, read func(value []byte) error) (found bool, err error) {
	var parsed error
	err = d.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if err != nil {
			return err
		}
		return item.Value(func(value []byte) error {
			found, parsed = true, read(value)
			return nil
		})
	})
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return false, nil
	case err != nil:
		return false, diskError(err)
	}
	return found, parsed
}

// put keeps the value for at least ttl milliseconds. When to forget is measured by
// the machine's clock and decides nothing: a Map compares the expiry it wrote with
// the clock it is handed. An hour more lets the two clocks differ.
func (d *Disk) put(key, value []byte, ttl int64) error {
	now := time.Now()
	if err := d.room.check(now, d.size); err != nil {
		return err
	}
	entry := badger.NewEntry(key, value)
	entry.ExpiresAt = expiry(now, ttl)
	return diskError(d.db.Update(func(txn *badger.Txn) error { return txn.SetEntry(entry) }))
}

func expiry(now time.Time, ttl int64) uint64 {
	const grace = 3600
	seconds := ttl/1000 + grace
	if seconds > math.MaxInt32*100 {
		return 0 // for good
	}
	return uint64(now.Unix() + seconds)
}

func (d *Disk) delete(key []byte) error {
	if err := d.room.check(time.Now(), d.size); err != nil {
		return err
	}
	return diskError(d.db.Update(func(txn *badger.Txn) error { return txn.Delete(key) }))
}

// size is how many bytes the tables on disk hold.
func (d *Disk) size() int64 {
	lsm, _ := d.db.Size()
	return lsm
}

// Close writes out what is in flight. Close the maps first.
func (d *Disk) Close() error {
	if err := d.db.Close(); err != nil {
		return fmt.Errorf("closing the data directory: %w", diskError(err))
	}
	return nil
}

func diskError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, badger.ErrDBClosed), errors.Is(err, badger.ErrBlockedWrites):
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}

// badgerLog passes on Badger's warnings and errors.
type badgerLog struct{ log *slog.Logger }

func (b badgerLog) Errorf(format string, args ...any)   { b.say(slog.LevelError, format, args) }
func (b badgerLog) Warningf(format string, args ...any) { b.say(slog.LevelWarn, format, args) }
func (b badgerLog) Infof(format string, args ...any)    { b.say(slog.LevelDebug, format, args) }
func (b badgerLog) Debugf(string, ...any)               {}

func (b badgerLog) say(level slog.Level, format string, args []any) {
	if b.log != nil {
		b.log.Log(context.Background(), level, "data directory", "badger", strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}
