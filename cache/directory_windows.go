package cache

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock of the directory until the file is closed, or the process ends. The
// locked byte lies behind what is written to the file.
func lockFile(file *os.File) error {
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: math.MaxInt32})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrInUse
	}
	return err
}

// syncDirectory does nothing: Windows cannot flush a directory.
func syncDirectory(string) error { return nil }

// free returns the room on the volume, for this user, in bytes.
func (d *directory) free() int64 {
	path, err := windows.UTF16PtrFromString(filepath.Dir(d.database))
	if err != nil {
		return 0
	}
	var free uint64
	_ = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return int64(min(free, math.MaxInt64))
}
