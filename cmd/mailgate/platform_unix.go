//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles returns how many files this process may have open.
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
