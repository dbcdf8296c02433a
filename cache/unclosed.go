package cache

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// What was written last is in Badger's newest log alone, until a table has it. Badger
// takes a directory without logs for one that was closed well; were the log of a process
// that was killed lost, nobody would notice. So the file of the lock says, while the
// directory is open, which log there must be: this one, or one that came after it. A watch
// writes it anew when another is the newest.
//
// While the directory is opened or closed logs become tables, and a table may be there that
// the manifest does not list yet. Then neither is missed. Only of a directory that was
// closed to the end is it certain that each table is listed.
//
// Of a table that went bad while the directory was open Badger may make another that lacks
// the rest, at its close at the latest. So it is written down as damaged, and stays that.

const (
	saysOpen     = "open, with log %d\n"
	saysChanging = "opening or closing\n"
	saysClosed   = "closed\n"
	saysDamaged  = "damaged while it was open\n"
)

// said is what the lock's file says, nothing if there is none.
func said(lock *os.File) (string, error) {
	if lock == nil {
		return "", nil
	}
	text, err := io.ReadAll(io.NewSectionReader(lock, 0, 100))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return string(text), nil
}

// lastLog is which log there must be, 0 for none.
func lastLog(said string) (log int) {
	if _, err := fmt.Sscanf(said, saysOpen, &log); err != nil {
		return 0 // closed, between the two, or new
	}
	return log
}

// say writes it down so that it outlives a power cut.
func say(lock *os.File, says string) error {
	if lock == nil {
		return nil
	}
	_, err := lock.WriteAt([]byte(says), 0)
	if err == nil {
		err = lock.Truncate(int64(len(says)))
	}
	if err == nil {
		err = lock.Sync()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return nil
}

// sayAgain writes down what was there before Badger failed to open a directory that was
// closed: it had no logs that could have become tables meanwhile.
func sayAgain(lock *os.File, before string) error {
	if before != saysClosed {
		return nil
	}
	return say(lock, before)
}

// expectLog says no when the directory was not closed and its newest log is missing.
func expectLog(said string, entries []fs.DirEntry) error {
	if log := lastLog(said); newestLog(entries) < log {
		return fmt.Errorf("%w: it was not closed, and %s is missing", ErrCorrupt, logName(log))
	}
	return nil
}

// markOpen writes down which log there must be from now on, if it is not the one that was
// written down. The log is on the drive before that is.
func markOpen(lock *os.File, dir string, written int) (log int, err error) {
	if lock == nil {
		return 0, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return written, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if log = newestLog(entries); log <= written {
		return written, nil
	}
	if err := syncDir(dir); err != nil {
		return written, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return log, say(lock, fmt.Sprintf(saysOpen, log))
}

// markClosed writes down that all is in tables that are listed. Badger is closed. A table
// that it could not finish stays behind, and is removed before.
func markClosed(lock *os.File, dir string) error {
	if lock == nil {
		return nil
	}
	if err := removeUnlisted(dir); err != nil {
		return err
	}
	return say(lock, saysClosed)
}

func removeUnlisted(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	listed, broken, err := manifest(dir)
	if err != nil {
		return err
	}
	tables := unlisted(entries, listed)
	if len(tables) == 0 {
		return nil
	}
	if broken {
		return fmt.Errorf("%w: %s breaks off", ErrCorrupt, badger.ManifestFilename)
	}
	for _, name := range tables {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%w: %w", ErrDisk, err)
		}
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func logName(number int) string { return fmt.Sprintf("%05d%s", number, logSuffix) }

// newestLog is the greatest number that a log has.
func newestLog(entries []fs.DirEntry) (newest int) {
	for _, entry := range entries {
		name, is := strings.CutSuffix(filepath.Base(entry.Name()), logSuffix)
		var number int
		if _, err := fmt.Sscanf(name, "%d", &number); is && err == nil {
			newest = max(newest, number)
		}
	}
	return newest
}
