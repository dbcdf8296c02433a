package cache

import (
	"math"
	"path/filepath"

	"golang.org/x/sys/windows"
)

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
