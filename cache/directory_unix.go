//go:build unix

package cache

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncDirectory flushes the names of the files in a directory.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// free returns the room on the file system, for users other than root, in bytes.
func (d *directory) free() int64 {
	var stat unix.Statfs_t
	if unix.Fstatfs(int(d.lock.Fd()), &stat) != nil {
		return 0
	}
	return int64(stat.Bavail) * int64(stat.Bsize)
}
