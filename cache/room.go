package cache

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Badger writes through memory maps. On a disk without room such a write does not
// fail, it ends the process. So a write is refused while there is still room for what
// Badger may already owe the disk: the logs of its memtables, the tables they become,
// and the compactions that are under way; and some to spare.
//
// Worse, a compaction that cannot make or open a file while others can loses what that
// file should have held. So there must be room for its files, in the file system and
// among the open files of the process.
//
// A look is due every few milliseconds, and what there is to spare is more than a disk
// can be filled with in that time. What a neighbour on the same file system takes in one
// sweep while a compaction runs cannot be held against it: then the process may end,
// and Open finds everything that was acknowledged.
const (
	roomSpare     = 24 << 20
	roomReserve   = 2*memTables*memTableSize + roomSpare
	roomClose     = memTables*memTableSize + roomSpare/4 // no new logs
	maxCompaction = 256 << 20                            // two at once, each a table and the dozen it overlaps
	roomInterval  = 5 * time.Millisecond
	fileReserve   = 128
)

// room watches how much is left on the disk of one directory.
type room struct {
	free    func() (space, error) // nil when there is no disk
	tables  func() int64          // bytes of the tables that compactions rewrite
	checked atomic.Int64          // when, in nanoseconds
	err     atomic.Pointer[error] // what the last look found
	log     roomLog
}

// space is what may still be written.
type space struct {
	bytes int64
	files int64 // made and opened
}

func newRoom(dir string, log *slog.Logger) *room {
	r := &room{tables: func() int64 { return 0 }, log: roomLog{to: log}}
	if dir != Memory {
		r.free = func() (space, error) { return freeSpace(dir) }
	}
	return r
}

// check says no when there was too little room at the last look, which is never
// longer ago than roomInterval.
func (r *room) check(now time.Time) error {
	if r.free == nil {
		return nil
	}
	last := r.checked.Load()
	if elapsed := now.UnixNano() - last; (elapsed < 0 || elapsed >= int64(roomInterval)) &&
		r.checked.CompareAndSwap(last, now.UnixNano()) {
		err := r.look(roomReserve + min(r.tables(), maxCompaction))
		r.err.Store(&err)
		r.log.saw(err, now)
	}
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

// checkClose says no when closing would have to write more than there is room for.
func (r *room) checkClose() error {
	if r.free == nil {
		return nil
	}
	return r.look(roomClose)
}

func (r *room) look(need int64) error {
	free, err := r.free()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDisk, err)
	case free.bytes < need:
		return fmt.Errorf("%w: %d MB free, %d MB needed", ErrFull, free.bytes>>20, need>>20)
	case free.files < fileReserve:
		return fmt.Errorf("%w: %d more, %d needed", ErrFiles, free.files, fileReserve)
	}
	return nil
}
