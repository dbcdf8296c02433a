//go:build unix

package cache

import (
	"math"

	"golang.org/x/sys/unix"
)

func freeSpace(dir string) (space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return space{}, err
	}
	free := space{bytes: int64(fs.Bavail) * int64(fs.Bsize), files: math.MaxInt64}
	if fs.Files > 0 { // some file systems make room for files as they need it, and say 0 of 0
		free.files = int64(fs.Ffree)
	}
	return free, nil
}
