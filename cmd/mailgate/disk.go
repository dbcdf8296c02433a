package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

// openDisk opens the data directory.
func openDisk(c *config.Config, now func() int64, log *slog.Logger) (*cache.Store, error) {
	options := cache.Options{Sync: c.Sync, Bytes: int64(c.CacheBytes), Now: now, Log: log}
	empty := false
	if c.DataDir != config.Memory {
		options.Dir, empty = c.DataDir, isEmpty(c.DataDir)
		if problem := pathProblem(c.DataDir); problem != "" {
			return nil, c.Complain("data-dir", problem)
		}
	}
	own, err := cache.Open(options)
	if err != nil {
		return nil, c.Complain("data-dir", c.DataDir+": "+err.Error()+remedy(err, c.RedisURL != ""))
	}
	if empty {
		log.Warn("the data directory was empty: there is no history", "data_dir", absolute(c.DataDir))
	}
	return own, nil
}

// pathProblem says why there can be no directory at a path, and makes the directory if there
// can.
func pathProblem(dir string) string {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return dir + " is a file; give a directory"
	}
	err := os.MkdirAll(dir, 0o700)
	switch failed, _ := errors.AsType[*fs.PathError](err); {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ENOTDIR):
		return dir + " cannot be a directory, as a file is on its path; give another"
	case failed != nil:
		return fmt.Sprintf("%s cannot be made: %s: %v%s", dir, failed.Path, failed.Err, remedy(err, false))
	}
	return err.Error()
}

// isEmpty reports whether a directory is empty or missing.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0 || errors.Is(err, fs.ErrNotExist)
}

// absolute is a path for readers of the log, who do not know the working directory.
func absolute(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// remedy is what an operator can do about a data directory that cannot be opened. Beside
// Redis it holds only the records for an outage.
func remedy(err error, besideRedis bool) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "; raise the limit of open files (LimitNOFILE), or free inodes"
	case errors.Is(err, cache.ErrCorrupt) && besideRedis:
		return "; nothing in it was changed: move it away, which forgets what this process admitted without Redis and has not yet written there"
	case errors.Is(err, cache.ErrCorrupt):
		return "; nothing in it was changed: restore a backup, or move it away to start without a history, after which every mailbox may be sent emails again"
	case errors.Is(err, cache.ErrInUse):
		return "; stop it first, or give each process its own"
	case errors.Is(err, cache.ErrFull):
		return "; free some space"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "; the user that mailgate runs as must own it and be able to write there"
	}
	return ""
}
