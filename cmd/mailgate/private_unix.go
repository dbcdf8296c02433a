//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// keepPrivate has every file that the process makes be for its user alone, also in a
// directory that others can look into. In the history are the addresses of mailboxes.
func keepPrivate() { syscall.Umask(0o077) }

// openToOthers reports whether everybody may write to a directory.
func openToOthers(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o002 != 0
}

// syncDir has it on the drive which files a directory has.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
