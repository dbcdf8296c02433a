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
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	repeats "github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	codes "github.com/mailgate/mailgate/verify/local"
)

// briefly is how much is kept in memory of what is looked at within minutes or never
// again: codes, and answers to sends.
var briefly = cache.Size{Entries: 10_000, Bytes: 4 << 20}

// A diskHistory is one on this machine's disk.
type diskHistory struct {
	history
	disk                *cache.Disk
	answers, handedOver *repeats.Keeper
}

// openDisk opens this machine's disk. The clock is the machine's, if now is nil.
func openDisk(s *settings.Settings, dir string, first throttle.Policy, now func() int64, log *slog.Logger) (diskHistory, error) {
	begun := dir != cache.Memory && isEmpty(dir)
	disk, err := cache.Open(cache.DiskOptions{Dir: dir, Sync: s.Sync, Log: log})
	if err != nil {
		return diskHistory{}, s.Complain("data_dir", dir+": "+err.Error()+remedy(err, s.RedisURL != ""))
	}
	if begun {
		log.Warn("the data directory was empty: no mailbox is on record in it", "data_dir", absolute(dir))
	}
	h, err := onDisk(disk, s, first, now)
	if err != nil {
		return diskHistory{}, errors.Join(fmt.Errorf("opening the history: %w", err), h.close(context.Background()))
	}
	return h, nil
}

// isEmpty reports whether nothing is in a directory, or there is none.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0 || errors.Is(err, fs.ErrNotExist)
}

// absolute is where a directory is for those who do not know where the process runs.
func absolute(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// remedy is what an operator can do about a data directory that cannot be opened; beside
// Redis it has only what this node goes on with.
func remedy(err error, besideRedis bool) string {
	switch {
	case ofFiles(err):
		return "; raise the number of files that the process may open, or that the file system may hold"
	case errors.Is(err, cache.ErrCorrupt) && besideRedis:
		return "; nothing in it was changed: move it away, after which what this node admitted without redis and had not yet written there is forgotten"
	case errors.Is(err, cache.ErrCorrupt):
		return "; nothing in it was changed: put a copy from before in its place, or move it away to begin with no history, after which every mailbox may be mailed anew"
	case errors.Is(err, cache.ErrInUse):
		return "; stop that one first, or give each its own"
	case errors.Is(err, cache.ErrFull):
		return "; make room"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "; the user that mailgate runs as has to own it and to be able to write there"
	}
	return ""
}

// ofFiles reports whether it is files that run short, and not room.
func ofFiles(err error) bool {
	return errors.Is(err, cache.ErrFiles) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// onDisk opens the parts on a disk. Also after an error those that were opened are to be
// closed.
func onDisk(disk *cache.Disk, s *settings.Settings, first throttle.Policy, now func() int64) (diskHistory, error) {
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
