package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	repeats "github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	codes "github.com/mailgate/mailgate/verify/local"
)

// briefly is the memory for what is read again within minutes or never: codes, and answers
// to sends.
var briefly = cache.Size{Entries: 10_000, Bytes: 4 << 20}

// A diskHistory is one on this machine's disk.
type diskHistory struct {
	history
	disk                *cache.Disk
	answers, handedOver *repeats.Keeper
}

// openDisk opens the data directory. The clock is the machine's if now is nil.
func openDisk(s *config.Config, dir string, first throttle.Policy, now func() int64, log *slog.Logger) (diskHistory, error) {
	begun := dir != cache.Memory && isEmpty(dir)
	if problem := pathProblem(dir); problem != "" {
		return diskHistory{}, s.Complain("data-dir", problem)
	}
	disk, err := cache.Open(cache.DiskOptions{Dir: dir, Sync: s.Sync, Log: log})
	if err != nil {
		return diskHistory{}, s.Complain("data-dir", dir+": "+err.Error()+remedy(err, s.RedisURL != ""))
	}
	if begun {
		log.Warn("the data directory was empty: there is no history", "data_dir", absolute(dir))
	}
	h, err := onDisk(disk, s, first, now)
	if err != nil {
		return diskHistory{}, errors.Join(fmt.Errorf("opening the history: %w", err), h.close(context.Background()))
	}
	return h, nil
}

// pathProblem says why there can be no directory at a path, and makes the directory if there
// can.
func pathProblem(dir string) string {
	if dir == cache.Memory {
		return ""
	}
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
	case ofFiles(err):
		return "; raise the limit of open files (LimitNOFILE), or free inodes"
	case errors.Is(err, cache.ErrCorrupt) && besideRedis:
		return "; nothing in it was changed: move it away, which forgets what this node admitted without redis and has not yet written there"
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

// ofFiles reports whether files run short, not space.
func ofFiles(err error) bool {
	return errors.Is(err, cache.ErrFiles) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// onDisk opens the parts on a disk. After an error too, the caller closes it.
func onDisk(disk *cache.Disk, s *config.Config, first throttle.Policy, now func() int64) (diskHistory, error) {
	var open []interface{ Close() }
	h := diskHistory{disk: disk, history: history{close: func(context.Context) error {
		for _, part := range open {
			part.Close()
		}
		return disk.Close()
	}}}
	size := cache.Size{Entries: s.CacheMailboxes, Bytes: int64(s.CacheBytes)}
	limiter, err := local.New(disk, local.Options{Policy: first, Size: size, Now: now})
	if err != nil {
		return h, err
	}
	open = append(open, limiter)
	meters, err := local.NewMeters(disk, local.MetersOptions{Size: size, Now: now})
	if err != nil {
		return h, err
	}
	open = append(open, meters)
	book, err := codes.New(disk, codes.Options{Size: briefly, Now: now})
	if err != nil {
		return h, err
	}
	open = append(open, book)
	answers, err := repeats.New(disk, repeats.Options{Terms: answerTerms, Size: briefly, Now: now})
	if err != nil {
		return h, err
	}
	open = append(open, answers)
	handedOver, err := repeats.New(disk, repeats.Options{Terms: markTerms, Name: "handed-over", Size: briefly, Now: now})
	if err != nil {
		return h, err
	}
	open = append(open, handedOver)
	h.mailbox = func(p throttle.Policy) outage.Survey { return limiter.Tiers("", p) }
	h.tiers = func(name string, p throttle.Policy) throttle.Recorder { return limiter.Tiers(name, p) }
	h.meter = meters.Limiter
	h.answers, h.handedOver = answers, handedOver
	h.codes, h.repeats = book, api.Repeats{Answers: answers, HandedOver: handedOver}
	h.ready = limiter.Ready // one disk keeps all
	return h, nil
}
