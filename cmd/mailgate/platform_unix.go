//go:build unix

package main

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// maxFiles is how many files this process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt32
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}

// keepPrivate makes all files of this process readable for its user only: the history holds
// addresses.
func keepPrivate() { syscall.Umask(0o077) }

// openToOthers reports whether every user may write to a directory.
func openToOthers(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o002 != 0
}

// syncDir flushes to the drive which files a directory has.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
