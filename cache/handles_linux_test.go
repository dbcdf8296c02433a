package cache

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// When the process is about to run out of files that it may open, nothing is written,
// what is there is found, and all is well when some are closed.
func TestFewFileHandles(t *testing.T) {
	d := writeTables(t, t.TempDir(), 600)
	other := t.TempDir()
	for _, left := range []uint64{fileReserve / 2, 0} {
		restore := leaveHandles(t, left)
		if err := putUntil(d, func(err error) bool { return err != nil }); !errors.Is(err, ErrFull) {
			t.Errorf("with %d handles left: %v", left, err)
		}
		readAll(t, d, 600)
		if _, err := Open(DiskOptions{Dir: other}); !errors.Is(err, ErrFull) {
			t.Errorf("opening another with %d handles left: %v", left, err)
		}
		restore()
	}
	if err := putUntil(d, func(err error) bool { return err == nil }); err != nil {
		t.Error(err)
	}
}

// Where there are too few files for Badger to open all tables, Open says that and not that they
// are damaged, and changes nothing.
func TestTooFewFileHandlesForTheTables(t *testing.T) {
	const tables, keys = 3, 20
	dir := t.TempDir()
	for range tables { // Badger makes one when it is closed
		if err := fillDisk(t, dir, keys).Close(); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, dir)
	restore := leaveHandles(t, fileReserve+tables-1) // and one of these is the lock's
	_, err := Open(DiskOptions{Dir: dir})
	restore()
	if !errors.Is(err, ErrFull) || !errors.Is(err, ErrFiles) || errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want %v and %v", err, ErrFull, ErrFiles)
	}
	if strings.Contains(err.Error(), ErrFull.Error()) {
		t.Errorf("it is not the disk that is full: %v", err)
	}
	if after := listing(t, dir); after != before {
		t.Errorf("the directory has changed:\n%s\n%s", before, after)
	}
	readAll(t, open(t, DiskOptions{Dir: dir}), keys)
}

// leaveHandles lets the process open so many files more, until restore.
func leaveHandles(t *testing.T, left uint64) (restore func()) {
	t.Helper()
	lowest, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	set := func(to unix.Rlimit) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &to); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.Rlimit{Cur: uint64(lowest.Fd()) + 1 + left, Max: limit.Max})
	restore = sync.OnceFunc(func() {
		set(limit)
		_ = lowest.Close()
	})
	t.Cleanup(restore)
	return restore
}

// putUntil puts until it comes out as wanted, for a while.
func putUntil(d *Disk, wanted func(error) bool) error {
	for deadline := time.Now().Add(time.Minute); ; {
		if err := d.put(diskKey(1<<20), nil, 1000); wanted(err) || time.Now().After(deadline) {
			return err
		}
	}
}
