package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/mailgate/mailgate/throttle/local"
)

// residentMemory measures a process that keeps a million mailboxes with ten sends each
// in a directory, has been asked about every one of them, and has admitted 100,000 new
// ones. The default memory forgets most and asks the disk.
func residentMemory() (rows []row, err error) {
	err = withDir(func(dir string) error {
		if err := fillDir(dir, many); err != nil {
			return err
		}
		out, err := child(residentChild, dir).Output()
		if err != nil {
			return fmt.Errorf("the measured process: %w", err)
		}
		var now, peak, own float64
		if _, err := fmt.Sscan(string(out), &now, &peak, &own); err != nil {
			return fmt.Errorf("the measured process said %q: %w", out, err)
		}
		rows = append(rows,
			figure("1,000,000 mailboxes of ten sends: resident", "MB", now).atMost(200),
			figure("  … at its peak", "MB", peak).atMost(200),
			figure("  … without pages of files", "MB", own))
		return nil
	})
	return rows, err
}

// residentClock is when the measured process asks: just after the tenth send.
const residentClock = int64(1_800_000_000_000)

// fillDir writes a directory as a limiter does that has admitted ten sends to each
// mailbox. The limiter itself does so for the first; the others are copies of its
// bytes, under their own names.
func fillDir(dir string, n int) error {
	first := mailbox("user", 0)
	if err := fillFirst(dir, first); err != nil {
		return err
	}
	db, err := badger.Open(sameSettings(dir))
	if err != nil {
		return err
	}
	return errors.Join(copyFirst(db, first, n), db.Close())
}

func fillFirst(dir, first string) error {
	clock := residentClock - 10*60_000
	limiter, closeLimiter, err := openLocal(dir, local.Options{Policy: residentPolicy, Now: func() int64 { return clock }})
	if err != nil {
		return err
	}
	for range 10 {
		if err = admitted(limiter, first); err != nil {
			break
		}
		clock += 60_000
	}
	return errors.Join(err, closeLimiter())
}

// residentPolicy lets ten sends in within minutes and keeps them.
var residentPolicy = mustPolicy("minute=1/60s,day=10/24h")

func copyFirst(db *badger.DB, first string, n int) error {
	var key, value []byte
	var expires uint64
	err := db.View(func(txn *badger.Txn) error {
		all := txn.NewIterator(badger.DefaultIteratorOptions)
		defer all.Close()
		for all.Rewind(); all.Valid(); all.Next() {
			item := all.Item()
			if strings.HasSuffix(string(item.Key()), first) {
				key, expires = item.KeyCopy(nil), item.ExpiresAt()
				var err error
				value, err = item.ValueCopy(nil)
				return err
			}
		}
		return fmt.Errorf("the first mailbox is not on disk")
	})
	if err != nil {
		return err
	}
	batch := db.NewWriteBatch()
	defer batch.Cancel()
	name := strings.TrimSuffix(string(key), first)
	for i := 1; i < n; i++ {
		entry := badger.NewEntry([]byte(name+mailbox("user", i)), value)
		entry.ExpiresAt = expires
		if err := batch.SetEntry(entry); err != nil {
			return err
		}
	}
	return batch.Flush()
}

// beResident is the measured process. It writes three numbers of megabytes.
func beResident(dir string) (err error) {
	limiter, closeLimiter, err := openLocal(dir, local.Options{Policy: residentPolicy, Now: func() int64 { return residentClock }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLimiter()) }()
	// No list of addresses is kept: it would be measured too.
	_, err = spread(fillers, many, func(i int) error {
		place := i * 7_919 % many // a prime: all mailboxes, in no order
		return denied(limiter, mailbox("user", place))
	})
	if err != nil {
		return err
	}
	if _, err := spread(fillers, 100_000, func(i int) error { return admitted(limiter, mailbox("more", i)) }); err != nil {
		return err
	}
	h, err := limiter.History(context.Background(), mailbox("user", many-1))
	if err != nil || len(h) != 10 {
		return errors.Join(err, fmt.Errorf("a history of %d sends, want 10", len(h)))
	}
	return printResident()
}

func printResident() error {
	megabytes, err := memoryOf("self")
	if err != nil {
		return err
	}
	_, err = fmt.Println(megabytes["VmRSS"], megabytes["VmHWM"], megabytes["RssAnon"])
	return err
}

// memoryOf is what the kernel says of a process's memory, in megabytes.
func memoryOf(pid string) (map[string]float64, error) {
	status, err := os.Open("/proc/" + pid + "/status")
	if err != nil {
		return nil, err
	}
	defer status.Close()
	megabytes := map[string]float64{}
	for lines := bufio.NewScanner(status); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[2] == "kB" {
			kb, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return nil, err
			}
			megabytes[strings.TrimSuffix(fields[0], ":")] = kb / 1024
		}
	}
	return megabytes, nil
}
