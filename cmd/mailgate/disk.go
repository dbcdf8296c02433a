package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	repeats "github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	codes "github.com/mailgate/mailgate/verify/local"
)

// briefly is how much is kept in memory of what is looked at within minutes or never
// again: codes, and answers to sends.
var briefly = cache.Size{Entries: 10_000, Bytes: 4 << 20}

// openLocal opens this machine's disk.
func openLocal(s *settings.Settings, first throttle.Policy, log *slog.Logger) (history, error) {
	disk, err := cache.Open(cache.DiskOptions{Dir: s.DataDir, Sync: s.Sync, Log: log})
	if err != nil {
		return history{}, s.Complain("data_dir", err.Error())
	}
	h, err := onDisk(disk, s, first)
	if err != nil {
		return history{}, errors.Join(fmt.Errorf("opening the history: %w", err), h.close())
	}
	return h, nil
}

// onDisk opens the parts on a disk. Also after an error those that were opened are to be
// closed.
func onDisk(disk *cache.Disk, s *settings.Settings, first throttle.Policy) (history, error) {
	var open []interface{ Close() }
	h := history{close: func() error {
		for _, part := range open {
			part.Close()
		}
		return disk.Close()
	}}
	size := cache.Size{Entries: s.CacheMailboxes, Bytes: int64(s.CacheBytes)}
	limiter, err := local.New(disk, local.Options{Policy: first, Size: size})
	if err != nil {
		return h, err
	}
	open = append(open, limiter)
	meters, err := local.NewMeters(disk, local.MetersOptions{Size: size})
	if err != nil {
		return h, err
	}
	open = append(open, meters)
	book, err := codes.New(disk, codes.Options{Size: briefly})
	if err != nil {
		return h, err
	}
	open = append(open, book)
	answers, err := repeats.New(disk, repeats.Options{Terms: answerTerms, Size: briefly})
	if err != nil {
		return h, err
	}
	open = append(open, answers)
	handedOver, err := repeats.New(disk, repeats.Options{Terms: markTerms, Name: "handed-over", Size: briefly})
	if err != nil {
		return h, err
	}
	open = append(open, handedOver)
	h.mailbox = func(p throttle.Policy) throttle.Historian { return limiter.Tiers("", p) }
	h.tiers = func(name string, p throttle.Policy) throttle.Limiter { return limiter.Tiers(name, p) }
	h.meter = meters.Limiter
	h.codes, h.repeats = book, api.Repeats{Answers: answers, HandedOver: handedOver}
	h.ready = limiter.Ready // one disk keeps all
	return h, nil
}
