package main

import (
	"errors"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// metersOnDisk measures what the algorithms take where all they know is on disk before
// a yes. No peer of theirs keeps it there.
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
	states, err := local.NewMeters(disk, local.MetersOptions{})
	if err != nil {
		return nil, err
	}
	defer states.Close()
	once := scene{keys: keysAtRandom, fill: 1, tier: throttle.Tier{Name: "year", Limit: 1, Window: tight.Window}}
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
	limiter = states.Limiter("denials", m)
	if err := once.prepare(ourPeer{limiter}); err != nil {
		return nil, err
	}
	if read, err = interleave(3, side{ours, once.asked(ourPeer{limiter}, once.order())}); err != nil {
		return nil, err
	}
	return append(rows, figure(a.name+": a denial with states on disk", "ns", read.median(ours, onTheClock))), nil
}
