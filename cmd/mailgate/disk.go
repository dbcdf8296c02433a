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

// openDisk opens the data directory, with so much memory before it, and makes it if it is missing.
func openDisk(c *config.Config, bytes int64, now func() int64, log *slog.Logger) (*cache.Store, error) {
	options := cache.Options{Format: recordFormat, Sync: c.Sync, Bytes: bytes, Now: now, Log: log}
	if c.DataDir == config.Memory {
		return cache.Open(options)
	}
	options.Dir = c.DataDir
	before, _ := os.ReadDir(c.DataDir)
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, c.Complain("data-dir", fmt.Sprintf("%s cannot be created: %v%s", c.DataDir, err, remedy(err)))
	}
	own, err := cache.Open(options)
	if err != nil {
		return nil, c.Complain("data-dir", c.DataDir+": "+err.Error()+remedy(err))
	}
	if len(before) == 0 {
		log.Warn("the data directory was empty: this node knows no earlier sends", "data_dir", absolute(c.DataDir))
	}
	return own, nil
}

// absolute returns a path for readers of the log, who do not know the working directory.
func absolute(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// remedy returns what an operator can do about a data directory that cannot be opened.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "; raise the limit of open files (LimitNOFILE), or free inodes"
	case errors.Is(err, cache.ErrFormat):
		return "; start the version of mailgate that made it, or move it away and lose every send that only this directory records"
	case errors.Is(err, cache.ErrCorrupt):
		return "; nothing in it was changed: restore a backup, or move it away and lose every send that only this directory records"
	case errors.Is(err, cache.ErrInUse):
		return "; stop it first, or give each process its own"
	case errors.Is(err, syscall.ENOTDIR):
		return "; give a directory"
	case errors.Is(err, cache.ErrFull):
		return "; free some space"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "; the user that mailgate runs as must own it and be able to write there"
	}
	return ""
}
