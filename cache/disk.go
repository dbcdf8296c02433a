package cache

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"
)

// Memory as the directory keeps everything in memory, on the same code path: nothing
// survives the process.
const Memory = ":memory:"

// A Disk keeps bytes by key until they expire. One process at a time has a directory
// open.
type Disk struct {
	db       *badger.DB
	dir      string
	version  atomic.Uint64 // of the last write
	room     *room
	trial    trial
	lock     *os.File
	pages    *pages
	watch    *watch
	visitors visitors
	names    sync.Map // of the parts that are open

	closing sync.Mutex
	closed  bool
}

// DiskOptions say where and how carefully to keep things.
type DiskOptions struct {
	Dir string // made if it is not there; or Memory

	// Sync makes each write wait until the drive has it. Without it an acknowledged
	// write survives the end of the process but not a power cut.
	Sync bool

	// Log is told what was repaired, what has gone bad, what Badger fails to do, and when there
	// is no room to write, and when there is again. The default is silence.
	Log *slog.Logger
}

// Open opens the directory and repairs what a crash has left behind. What cannot be
// repaired is ErrCorrupt, and then nothing in the directory was changed. Every table
// is read once to be sure of that, so Open takes about a second for each gigabyte.
func Open(o DiskOptions) (*Disk, error) {
	if o.Dir == "" {
		return nil, errors.New("opening the data directory: no directory was named")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Disk{dir: o.Dir, room: newRoom(o.Dir, o.Log)}
	d.trial.write = func() error { return d.put([]byte(trialKey), nil, 0) }
	if err := d.open(o); err != nil {
		if d.lock != nil {
			_ = d.lock.Close()
		}
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	return d, nil
}

func (d *Disk) open(o DiskOptions) error {
	if o.Dir == Memory {
		return d.openBadger(o)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	var err error
	if d.lock, err = lockDir(o.Dir); err != nil {
		return err
	}
	before, err := said(d.lock)
	if err != nil {
		return err
	}
	found, err := inspect(o.Dir, before, o.Log)
	if err != nil {
		return err
	}
	d.room.tables = func() int64 { return found.bytes }
	if err := d.room.check(time.Now()); err != nil {
		return err
	}
	if err := enoughHandles(o.Dir, found.tables); err != nil {
		return err
	}
	if err := say(d.lock, saysChanging); err != nil {
		return err
	}
	if err := d.openBadger(o); err != nil {
		err = errors.Join(err, sayAgain(d.lock, before))
		if found.store && ofDamage(err) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return err
	}
	log, err := markOpen(d.lock, o.Dir, 0)
	if err != nil {
		return errors.Join(err, d.db.Close())
	}
	d.room.tables = func() int64 { return tableBytes(d.db) }
	d.pages = dropPages(d.db, o.Dir)
	d.watch = newWatch(d, log, o.Log)
	return nil
}

// openBadger turns into an error what Badger panics about. Its kind is ErrDisk.
//
// In Badger's managed mode the versions of a key are ours to number. A Map holds the
// writers of one key apart and every read wants the newest, so a counter will do, and
// no write has to wait until those before it are done.
func (d *Disk) openBadger(o DiskOptions) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDisk, p)
		}
	}()
	d.db, err = badger.OpenManaged(settings(o))
	if err != nil {
		return badgerError(err)
	}
	d.version.Store(d.db.MaxVersion())
	d.db.SetDiscardTs(newest) // only the newest version of a key is kept
	return nil
}

const newest = math.MaxUint64

// tableBytes is how much the tables on disk take now.
func tableBytes(db *badger.DB) (bytes int64) {
	for _, level := range db.Levels() {
		bytes += level.Size
	}
	return bytes
}

// claim takes a part of the disk, unless somebody has it.
func (d *Disk) claim(name string) bool {
	_, taken := d.names.LoadOrStore(name, true)
	return !taken
}

func (d *Disk) giveBack(name string) { d.names.Delete(name) }

// get hands the value of a key to read, which must not keep it.
func (d *Disk) get(key []byte, read func(value []byte) error) (found bool, err error) {
	var parsed error
	err = d.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		switch {
		case errors.Is(err, badger.ErrKeyNotFound):
			return nil
		case err != nil:
			return err
		}
		return item.Value(func(value []byte) error {
			found, parsed = true, read(value)
			return nil
		})
	})
	if err != nil {
		return false, err
	}
	return found, parsed
}

// enter lets a caller in, who has to leave, unless the disk is closed or known to be damaged.
func (d *Disk) enter() error {
	if err := d.watch.damage(); err != nil {
		return err
	}
	if !d.visitors.enter() {
		return ErrClosed
	}
	return nil
}

// view lets read look at what is on disk now.
func (d *Disk) view(read func(txn *badger.Txn) error) (err error) {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.visitors.leave()
	// Badger takes the lengths in a table at their word.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	d.pages.touch()
	return diskError(d.db.View(read))
}

// put keeps the value for at least ttl milliseconds by the machine's clock. Key and value are
// the disk's from now on.
func (d *Disk) put(key, value []byte, ttl int64) error {
	if len(key) > maxKey || len(value) > maxValue {
		return unchanged{fmt.Errorf("%w: %d and %d bytes", ErrTooLong, len(key), len(value))}
	}
	entry := badger.NewEntry(key, value)
	entry.ExpiresAt = forgetAt(time.Now(), ttl)
	return d.write(func(txn *badger.Txn) error { return txn.SetEntry(entry) })
}

func (d *Disk) delete(key []byte) error {
	return d.write(func(txn *badger.Txn) error { return txn.Delete(key) })
}

func (d *Disk) write(change func(*badger.Txn) error) error {
	if err := d.enter(); err != nil {
		return unchanged{err}
	}
	defer d.visitors.leave()
	if err := d.room.check(time.Now()); err != nil {
		return unchanged{err}
	}
	d.pages.touch()
	txn := d.db.NewTransactionAt(newest, true)
	defer txn.Discard()
	err := change(txn)
	if err == nil {
		err = txn.CommitAt(d.version.Add(1), nil)
	}
	return diskError(err)
}

// forgetAt is when Badger may forget, in seconds since 1970, or 0 for never. Badger goes by the
// machine's clock, and a Map compares the expiry it wrote with the clock it is handed. An hour
// more lets the two differ: when the machine's is set forward by more than that and the lifetime,
// what was written before is forgotten too soon. A longer grace would have everybody's disk
// keep more.
func forgetAt(now time.Time, ttl int64) uint64 {
	const grace, lifetime = 3600, 100 * 366 * 24 * 3600
	seconds := max(ttl, 0)/1000 + grace
	if seconds > lifetime || now.Unix() > math.MaxInt64-seconds {
		return 0
	}
	return uint64(max(now.Unix(), 0) + seconds)
}

// Close writes out what is in flight and gives the directory back. Calls to the maps
// of this disk then fail with ErrClosed. When the disk has no room to write to,
// Close changes nothing and says ErrFull: it may be tried again, or the process may
// end, for Open finds everything that was acknowledged.
func (d *Disk) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed {
		return nil
	}
	if err := d.room.checkClose(); err != nil {
		return fmt.Errorf("closing the data directory: %w", err)
	}
	d.watch.stop()
	damaged := d.watch.damage() != nil
	if !damaged {
		if err := say(d.lock, saysChanging); err != nil {
			return fmt.Errorf("closing the data directory: %w", err)
		}
	}
	d.closed = true
	d.visitors.close()
	d.pages.stop()
	err := d.db.Close()
	if err == nil && !damaged {
		err = markClosed(d.lock, d.dir)
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("closing the data directory: %w: %w", ErrDisk, err)
	}
	return nil
}

func diskError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, badger.ErrDBClosed), errors.Is(err, badger.ErrBlockedWrites):
		return ErrClosed
	case strings.Contains(err.Error(), y.ErrChecksumMismatch.Error()):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}
