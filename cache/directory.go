package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// directory is a data directory that this process has for itself. The file of its lock says in
// which state the last process left it.
type directory struct {
	lock     *os.File
	database string    // the database; its log lies beside it
	state    string    // as the last process left it
	written  time.Time // when it did, by the clock of its machine
	marked   bool      // as open by this process
}

const (
	lockName     = "in-use"
	databaseName = "history.db"
	logSuffix    = "-wal"

	// The states are of one length, so that one overwrites the other in place.
	stateNew    = ""
	stateOpen   = "open  \n"
	stateClosed = "closed\n"
)

// openDirectory makes the directory if it does not exist, locks it, and looks whether the
// files are there that the state promises.
func openDirectory(dir string) (*directory, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fileError(err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fileError(err)
	}
	d := &directory{lock: lock, database: filepath.Join(path, databaseName)}
	if err := d.inspect(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

func (d *directory) inspect() error {
	if err := lockFile(d.lock); err != nil {
		return err
	}
	state := make([]byte, len(stateOpen))
	n, _ := d.lock.ReadAt(state, 0)
	d.state = string(state[:n])

	database, err := d.sizeOf(d.database)
	if err != nil {
		return err
	}
	log, err := d.sizeOf(d.database + logSuffix)
	switch {
	case err != nil:
		return err
	case database <= 0 && (d.state != stateNew || log > 0):
		return fmt.Errorf("%w: %s is missing or empty", ErrCorrupt, d.database)
	case log < 0 && d.state == stateOpen:
		return fmt.Errorf("%w: %s is missing, with the newest writes of a process that was killed", ErrCorrupt, d.database+logSuffix)
	}
	// SQLite would make a database that everyone may read.
	file, err := os.OpenFile(d.database, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fileError(err)
	}
	return file.Close()
}

// warn logs what the last process left that the records cannot tell.
func (d *directory) warn(log *slog.Logger) {
	if d.state == stateOpen {
		log.Warn("the data directory was not closed: the newest writes are recovered from the log as far as it is intact; after a power cut, or if the log is damaged, later ones are lost",
			"log", d.database+logSuffix)
	}
	if d.written.After(time.Now().Add(time.Second)) {
		log.Warn("the newest record is in the future: the clock was ahead, or is behind; that record counts until the clock has passed it, or until a reset",
			"newest", d.written.UTC(), "ahead", time.Until(d.written).Round(time.Second).String())
	}
}

// sizeOf returns the size of a file, which has to be writable, or -1 if there is none, and notes
// when it was written.
func (d *directory) sizeOf(path string) (int64, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, fileError(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if info.ModTime().After(d.written) {
		d.written = info.ModTime()
	}
	return info.Size(), nil
}

// mark writes the state down, and flushes it with the names of the files.
func (d *directory) mark(state string) error {
	if _, err := d.lock.WriteAt([]byte(state), 0); err != nil {
		return fileError(err)
	}
	if err := d.lock.Sync(); err != nil {
		return fileError(err)
	}
	d.marked = true
	return syncDirectory(filepath.Dir(d.database))
}

// close marks the directory as closed, unless the log could not be merged into the database.
func (d *directory) close() (err error) {
	if _, missing := os.Stat(d.database + logSuffix); d.marked && errors.Is(missing, fs.ErrNotExist) {
		err = d.mark(stateClosed)
	}
	return errors.Join(err, d.lock.Close())
}

// fileError gives the error of a file its kind.
func fileError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
