package main

import (
	"errors"
	"os"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle/local"
)

const ours = "mailgate"

// fillers is how many callers admit at once where that is not what is measured.
const fillers = 64

// openLocal opens the limiter of one process on a directory, or in memory.
func openLocal(dir string, o local.Options) (*local.Limiter, func() error, error) {
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		return nil, nil, err
	}
	limiter, err := local.New(disk, o)
	if err != nil {
		return nil, nil, errors.Join(err, disk.Close())
	}
	return limiter, func() error {
		limiter.Close()
		return disk.Close()
	}, nil
}

// withLocal opens the limiter on a directory of its own for as long as use runs.
func withLocal(o local.Options, use func(*local.Limiter) error) error {
	return withDir(func(dir string) (err error) {
		limiter, closeLimiter, err := openLocal(dir, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeLimiter()) }()
		return use(limiter)
	})
}

// withDir makes a directory for as long as use runs.
func withDir(use func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return use(dir)
}
