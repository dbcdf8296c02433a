package cache

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// When the process is about to run out of files that it may open, nothing is written,
// what is there is found, and all is well when some are closed.
func TestFewFileHandles(t *testing.T) {
	d := writeTables(t, t.TempDir(), 600)
	other := t.TempDir()
	lowest, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer lowest.Close()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	defer restore()
	for _, left := range []uint64{fileReserve / 2, 0} {
		low := unix.Rlimit{Cur: uint64(lowest.Fd()) + 1 + left, Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
			t.Fatal(err)
		}
		if err := putUntil(d, func(err error) bool { return err != nil }); !errors.Is(err, ErrFull) {
			t.Errorf("with %d handles left: %v", left, err)
		}
		readAll(t, d, 600)
		if _, err := Open(DiskOptions{Dir: other}); !errors.Is(err, ErrFull) {
			t.Errorf("opening another with %d handles left: %v", left, err)
		}
	}
	restore()
	if err := putUntil(d, func(err error) bool { return err == nil }); err != nil {
		t.Error(err)
	}
}

// putUntil puts until it comes out as wanted, for a while.
func putUntil(d *Disk, wanted func(error) bool) error {
	for deadline := time.Now().Add(time.Minute); ; {
		if err := d.put(diskKey(1<<20), nil, 1000); wanted(err) || time.Now().After(deadline) {
			return err
		}
	}
}
