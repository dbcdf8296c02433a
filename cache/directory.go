package cache

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mailgate/mailgate/internal/filelock"
)

// directory is a data directory that this process has for itself. The file of its lock says in
// which state the last process left it.
type directory struct {
	lock     *os.File
	database string        // the database; its log lies beside it
	state    string        // as the last process left it
	accepts  bool          // the operator has removed the state, to start with what is intact
	marked   bool          // by this process
	files    []os.FileInfo // that are open, in the order of paths
}

const (
	lockName     = "in-use"
	databaseName = "history.db"
	logSuffix    = "-wal"
	indexSuffix  = "-shm" // of the log

	// The states are of one length, so that one overwrites the other in place.
	stateNew    = ""
	stateOpen   = "open  \n"
	stateClosed = "closed\n"
)

// boot returns what tells this start of the machine from others: after another one the power may have
// been cut. It is empty where the system does not say.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
}

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
		_ = filelock.Release(lock)
		return nil, err
	}
	return d, nil
}

func (d *directory) inspect() error {
	if free, err := filelock.Take(d.lock); err != nil || !free {
		return cmp.Or(err, ErrInUse)
	}
	note, err := io.ReadAll(io.NewSectionReader(d.lock, 0, 256))
	if err != nil {
		return err
	}
	state := min(len(stateOpen), len(note))
	d.state = string(note[:state])
	database, err := sizeOf(d.database)
	if err != nil {
		return err
	}
	path := d.database + logSuffix
	log, err := sizeOf(path)
	switch {
	case err != nil:
		return err
	case database <= 0 && (d.state != stateNew || log > 0):
		return fmt.Errorf("%w: %s is missing or empty", ErrCorrupt, d.database)
	case log <= 0 && d.open():
		return d.acceptable(fmt.Errorf("%w: %s is missing or empty, with the newest writes of a process that was killed", ErrCorrupt, path))
	case d.open() && string(note[state:]) == boot():
		if err := checkLog(path, d.database+indexSuffix); err != nil {
			return d.acceptable(err)
		}
	}
	d.accepts = d.state == stateNew && database > 0
	// SQLite would make files that everyone may read, and fails in its own words where it may not.
	for _, path := range []string{d.database, path} {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return fileError(err)
		}
		if err := file.Close(); err != nil {
			return fileError(err)
		}
	}
	return nil
}

// open reports whether the last process did not close the directory.
func (d *directory) open() bool { return d.state != stateNew && d.state != stateClosed }

// acceptable adds to an error how to start all the same.
func (d *directory) acceptable(err error) error {
	return fmt.Errorf("%w; to start with what is intact, remove %s", err, d.lock.Name())
}

// warn logs what the last process left.
func (d *directory) warn(log *slog.Logger, found findings) {
	if d.open() {
		log.Warn("the data directory was not closed: the newest writes are recovered from the log; after a power cut, those at its end are lost",
			"log", d.database+logSuffix)
	}
	if d.accepts {
		log.Warn("the data directory has no file in-use: it is opened with what is intact, and damaged records are removed", "removed", len(found.damaged))
	}
	if found.future > 0 {
		log.Warn("records are in the future: the clock was ahead, or is behind; they count until the clock has passed them, or until a reset",
			"records", found.future, "newest", time.UnixMilli(found.Newest).UTC(),
			"ahead", (time.Duration(found.Newest-found.now) * time.Millisecond).Round(time.Second).String())
	}
}

// opened marks the directory as open, and notes which files are.
func (d *directory) opened() error {
	for _, path := range d.paths() {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		d.files = append(d.files, info)
	}
	log, err := os.OpenFile(d.database+logSuffix, os.O_RDWR, 0)
	if err != nil {
		return fileError(err)
	}
	if err := errors.Join(log.Sync(), log.Close()); err != nil {
		return fileError(err)
	}
	return d.mark(stateOpen)
}

func (d *directory) paths() []string {
	return []string{d.lock.Name(), d.database, d.database + logSuffix, d.database + indexSuffix}
}

// same returns ErrReplaced if the paths do not name the files that are open.
func (d *directory) same() error {
	for i, open := range d.files {
		path := d.paths()[i]
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrReplaced, err)
		}
		if !os.SameFile(info, open) {
			return fmt.Errorf("%w: %s is another file", ErrReplaced, path)
		}
	}
	return nil
}

// sizeOf returns the size of a file, which has to be writable, or -1 if there is none.
func sizeOf(path string) (int64, error) {
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
	return info.Size(), nil
}

// mark writes the state down, and flushes it with the names of the files.
func (d *directory) mark(state string) error {
	if _, err := d.lock.WriteAt([]byte(state+boot()), 0); err != nil {
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
	return errors.Join(err, filelock.Release(d.lock))
}

// fileError gives the error of a file its kind.
func fileError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
