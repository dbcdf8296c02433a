//go:build unix

package main

import (
	"fmt"
	"io"
	"math"
	"os"
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

// toJournal reports whether it is the journal of systemd that gets what is written.
func toJournal(to io.Writer) bool {
	file, _ := to.(*os.File)
	journal := os.Getenv("JOURNAL_STREAM")
	if file == nil || journal == "" {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	at, ok := info.Sys().(*syscall.Stat_t)
	return ok && journal == fmt.Sprintf("%d:%d", at.Dev, at.Ino)
}
