package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mailgate/mailgate/internal/filelock"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// ErrHistory means that a directory has no records to back up, or has some where a backup was to be
// restored.
var ErrHistory = fmt.Errorf("%w: the wrong data directory", ErrUnavailable)

// Summary is what a backup has.
type Summary struct {
	Records int
	Newest  int64 // when the newest was written
}

// partial marks a file that is not whole.
const partial = ".partial"

// Backup copies the records of the directory, as they are at one moment, and other files of it to a new
// file. Another process may have the directory open; its log grows meanwhile. If the file exists, the error is fs.ErrExist.
func Backup(o Options, file string, along ...string) (Summary, error) {
	if _, err := os.Lstat(file); err == nil {
		return Summary{}, fmt.Errorf("%s: %w; name a new file", file, fs.ErrExist)
	}
	summary, err := backup(o.withDefaults(), file, along)
	if err != nil {
		return summary, unavailable("making a backup", err)
	}
	return summary, nil
}

func backup(o Options, file string, along []string) (s Summary, err error) {
	if _, err := os.Stat(filepath.Join(o.Dir, databaseName)); err != nil {
		return s, fmt.Errorf("%w: %s has no history (%w)", ErrHistory, o.Dir, err)
	}
	dir, err := openDirectory(o.Dir) // which finds a damaged log
	if err == nil {
		err = filelock.Release(dir.lock) // a node may start
	}
	if err != nil && !errors.Is(err, ErrInUse) {
		return s, err
	}
	path := file + partial
	defer os.Remove(path)
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s, fileError(err)
	}
	defer made.Close()
	if err := copyDatabase(filepath.Join(o.Dir, databaseName), path, o.Dir, along); err != nil {
		return s, databaseError(err, o.Dir)
	}
	found, err := verify(path, o.Format, o.Now())
	if err != nil {
		return s, err
	}
	if n := len(found.damaged); n > 0 {
		return s, fmt.Errorf("%w: %d records in %s have changed", ErrCorrupt, n, o.Dir)
	}
	if err := made.Sync(); err != nil {
		return s, fileError(err)
	}
	if err := os.Rename(path, file); err != nil {
		return s, fileError(err)
	}
	return found.Summary, syncDirectory(filepath.Dir(file))
}

// copyDatabase copies the records at one moment, and other files into a table beside them.
func copyDatabase(from, to, dir string, along []string) (err error) {
	source, err := sqlite.OpenConn(from, sqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := sqlitex.ExecuteTransient(source, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{to}}); err != nil {
		return err
	}
	target, err := sqlite.OpenConn(to, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := sqlitex.ExecuteTransient(target, "CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB)", nil); err != nil {
		return err
	}
	for _, name := range along {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = sqlitex.ExecuteTransient(target, "INSERT INTO files VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{name, content}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Restore makes a directory of a backup.
func Restore(o Options, file string) (Summary, error) {
	summary, err := restore(o.withDefaults(), file)
	if err != nil {
		return summary, unavailable("restoring a backup", err)
	}
	return summary, nil
}

func restore(o Options, file string) (s Summary, err error) {
	from, err := os.Open(file)
	if err != nil {
		return s, err
	}
	defer from.Close()
	if size, err := sizeOf(filepath.Join(o.Dir, databaseName)); err != nil || size > 0 {
		return s, errors.Join(err, fmt.Errorf("%w: %s has a history; move it away", ErrHistory, o.Dir))
	}
	found, err := verify(file, o.Format, o.Now())
	if err == nil && len(found.damaged) > 0 {
		err = fmt.Errorf("%w: %d records in %s have changed", ErrCorrupt, len(found.damaged), file)
	}
	if err != nil {
		return s, err
	}
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return s, err
	}
	defer filelock.Release(dir.lock)
	path := dir.database + partial
	defer os.Remove(path)
	if err := copyFile(from, path); err != nil {
		return s, fileError(err)
	}
	if err := takeOut(path, filepath.Dir(path)); err != nil {
		return s, databaseError(err, path)
	}
	if err := os.Rename(path, dir.database); err != nil {
		return s, fileError(err)
	}
	return found.Summary, dir.mark(stateClosed)
}

func copyFile(from io.Reader, path string) error {
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

// takeOut moves the other files of a backup to a directory.
func takeOut(path, dir string) (err error) {
	db, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = sqlitex.ExecuteTransient(db, "SELECT name, content FROM files", &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		return copyFile(row.ColumnReader(1), filepath.Join(dir, filepath.Base(row.ColumnText(0))))
	}})
	if err != nil {
		return err
	}
	return sqlitex.ExecuteTransient(db, "DROP TABLE files", nil)
}
