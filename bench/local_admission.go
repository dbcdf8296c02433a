package main

import (
	"errors"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// localAdmission compares the yes to a new mailbox on a real directory with the bare
// write below it: one transaction of the same bytes in a Badger of the same settings.
func localAdmission() (rows []row, err error) {
	const peer, callers, batch = "bare Badger", 64, 20_000
	err = withDir(func(dir string) (err error) {
		db, err := badger.Open(sameSettings(dir))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return withLocal(local.Options{Policy: throttle.DefaultPolicy()}, func(limiter *local.Limiter) error {
			read, err := interleave(9,
				side{ours, newMailboxes(callers, batch, func(mailbox string) error { return admitted(limiter, mailbox) })},
				side{peer, newMailboxes(callers, batch, func(mailbox string) error { return write(db, mailbox) })},
			)
			if err != nil {
				return err
			}
			rows = append(rows, read.compare("an admission on disk, 64 callers", onTheClock, ours, peer, 2))
			return nil
		})
	})
	return rows, err
}

// newMailboxes is a round over mailboxes that were never seen before.
func newMailboxes(callers, batch int, ask func(mailbox string) error) func() (cost, error) {
	round := 0
	return func() (cost, error) {
		first := round * batch
		round++
		fresh := make([]string, batch)
		for i := range fresh {
			fresh[i] = mailbox("user", first+i)
		}
		wall, err := spread(callers, batch, func(i int) error { return ask(fresh[i]) })
		return cost{wall: wall}, err
	}
}

// write stores what the cache stores for a mailbox with one send: its name before the
// address, and an expiry, a version, a time and an id in 19 bytes.
func write(db *badger.DB, mailbox string) error {
	key := append([]byte("mailbox\x00"), mailbox...)
	value := make([]byte, 19)
	return db.Update(func(txn *badger.Txn) error {
		return txn.SetEntry(badger.NewEntry(key, value).WithTTL(25 * time.Hour))
	})
}
