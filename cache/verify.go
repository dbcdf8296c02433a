package cache

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// findings are what a look at a whole database has found.
type findings struct {
	Summary
	damaged []string // keys of records that are not what was written, as they are now
	future  int      // records that were written in the future
	now     int64
}

// verify reads the whole database and changes nothing. SQLite's own check sees the pages and the
// order of the keys, but not a changed bit in a key, an expiry or a value.
func verify(path string, format int, now int64) (findings, error) {
	db := &database{path: path}
	found := findings{now: now}
	var err error
	if db.conn, err = sqlite.OpenConn(path, sqlite.OpenReadOnly); err == nil { // closing another kind would merge the log
		err = db.check()
	}
	if err == nil {
		err = db.checkFormat(format)
	}
	if err == nil {
		err = db.checkRecords(&found)
	}
	return found, errors.Join(databaseError(err, path), db.close())
}

// check returns ErrCorrupt if pages or the order of keys are damaged.
func (db *database) check() error {
	check, err := db.conn.Prepare("PRAGMA integrity_check(1)")
	if err != nil {
		return err
	}
	found, err := sqlitex.ResultText(check)
	if err == nil && found != "ok" {
		err = fmt.Errorf("%w: %s: %s", ErrCorrupt, db.path, strings.Join(strings.Fields(found), " "))
	}
	return err
}

// tolerance is how far ahead a clock may have been unnoticed.
const tolerance = int64(time.Second / time.Millisecond)

// isNew reports whether nothing was written yet.
func (db *database) isNew() (bool, error) {
	tables, err := sqlitex.ResultInt64(db.conn.Prep("SELECT count(*) FROM sqlite_master"))
	return tables == 0, err
}

// checkFormat returns ErrFormat if the records are of another format.
func (db *database) checkFormat(format int) error {
	if empty, err := db.isNew(); err != nil || empty {
		return err
	}
	found, err := sqlitex.ResultInt64(db.conn.Prep("PRAGMA user_version"))
	if err == nil && found != int64(format) {
		err = fmt.Errorf("%w: %s has format %d, and this program reads format %d", ErrFormat, db.path, found, format)
	}
	return err
}

func (db *database) checkRecords(found *findings) error {
	if empty, err := db.isNew(); err != nil || empty {
		return err
	}
	all, err := db.conn.Prepare("SELECT " + columns + " FROM records")
	if err != nil {
		return err
	}
	var r row
	for {
		more, err := db.next(all, &r)
		switch {
		case more && err != nil:
			found.damaged = append(found.damaged, r.key)
		case err != nil || !more:
			return err
		case r.key != readyKey:
			found.Records++
			found.Newest = max(found.Newest, r.written)
			if r.written > found.now+tolerance {
				found.future++
			}
		}
	}
}
