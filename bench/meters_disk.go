package main

import (
	"errors"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// metersOnDisk measures what the algorithms take where all they know is on disk before
// a yes. No peer keeps it there: beside them is only who says no, which the disk is not
// asked for.
func metersOnDisk() (rows []row, err error) {
	for _, a := range []algorithm{fixedWindow, slidingWindow, tokenBucket, leakyBucket} {
		err := withDir(func(dir string) error {
			more, err := a.onDisk(dir)
			rows = append(rows, more...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (a algorithm) onDisk(dir string) (rows []row, err error) {
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	states, err := local.NewMeters(disk, local.MetersOptions{Size: cache.Size{Entries: 200_000, Bytes: 128 << 20}}) // for all
	if err != nil {
		return nil, err
	}
	defer states.Close()
	once := scene{what: "a denial with states on disk", keys: keysAtRandom, fill: 1, tier: throttle.Tier{Name: "year", Limit: 1, Window: tight.Window}}
	m, err := a.meter(once.tier)
	if err != nil {
		return nil, err
	}
	limiter := states.Limiter("bench", m)
	read, err := interleave(3, side{ours, newMailboxes(fillers, batch, func(mailbox string) error { return admitted(limiter, mailbox) })})
	if err != nil {
		return nil, err
	}
	rows = append(rows, figure(a.name+": an admission on disk, 64 callers", "ns", read.median(ours, onTheClock)))
	more, err := a.beside(states.Limiter("denials", m), once)
	return append(rows, more...), err
}
