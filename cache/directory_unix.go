//go:build unix

package cache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock of the directory until the file is closed, or the process ends.
func lockFile(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

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
