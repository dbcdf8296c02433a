package cache

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Badger writes through memory maps. On a disk without room such a write does not
// fail, it ends the process. So a write is refused while there is still room for what
// Badger may already owe the disk: its memtables and one compaction of everything.
const (
	roomReserve  = 6 * memTableSize
	roomInterval = 50 * time.Millisecond
)

// room watches how much is left on the disk of one directory.
type room struct {
	free    func() (int64, error) // bytes that may still be written
	checked atomic.Int64          // when, in nanoseconds
	err     atomic.Pointer[error] // what the last look found
}

func newRoom(dir string) *room {
	r := &room{free: func() (int64, error) { return freeBytes(dir) }}
	if dir == Memory {
		r.free = nil
	}
	return r
}

// check says no when there was too little room at the last look, which is never
// longer ago than roomInterval.
func (r *room) check(now time.Time, size func() int64) error {
	if r.free == nil {
		return nil
	}
	last := r.checked.Load()
	if elapsed := now.UnixNano() - last; (elapsed < 0 || elapsed >= int64(roomInterval)) &&
		r.checked.CompareAndSwap(last, now.UnixNano()) {
		err := r.look(size)
		r.err.Store(&err)
	}
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *room) look(size func() int64) error {
	free, err := r.free()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	need := int64(roomReserve)
	if size != nil {
		need += size()
	}
	if free < need {
		return fmt.Errorf("%w: %d MB free, %d MB needed", ErrFull, free>>20, need>>20)
	}
	return nil
}
