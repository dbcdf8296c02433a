//go:build unix

package cache

import (
	"errors"
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
	handles, err := freeHandles(dir)
	free.files = min(free.files, handles)
	return free, err
}

// freeHandles is how many more files the process may open, taking it that the low
// numbers go first: as a new file always gets the lowest.
func freeHandles(dir string) (int64, error) {
	lowest, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(lowest)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int64(min(uint64(limit.Cur), math.MaxInt32)) - int64(lowest), nil
}
