package cache

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// schema is the table as SQLite keeps it. The sum is over the key, the expiry and the value, as
// SQLite would return a value that has changed on the drive.
const schema = `CREATE TABLE IF NOT EXISTS records (
	key TEXT PRIMARY KEY, expires INTEGER NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID`

// page is how many records are read at once by what reads many.
const page = 256

// database is the SQLite file, on one connection: that of another one would read its pages anew
// after each change.
type database struct {
	path string
	conn *sql.DB

	begin, commit, rollback, put, remove, expire, one, many, pageEnd *sql.Stmt
}

func openDatabase(path string, sync bool) (*database, error) {
	db := &database{path: path}
	if err := db.open(sync); err != nil {
		return nil, errors.Join(databaseError(err, path), db.close())
	}
	return db, nil
}

func (db *database) open(sync bool) (err error) {
	synchronous := "synchronous(NORMAL)" // flushes at checkpoints, so a power cut takes only the newest
	if sync {
		synchronous = "synchronous(FULL)"
	}
	if db.conn, err = connect(db.path, "busy_timeout(5000)", "page_size(4096)", "journal_mode(WAL)", synchronous,
		"cache_size(-8192)", "wal_autocheckpoint(4000)", "journal_size_limit(33554432)", "temp_store(MEMORY)"); err != nil {
		return err
	}
	if err := db.check(); err != nil {
		return err
	}
	if _, err := db.conn.Exec(schema); err != nil {
		return err
	}
	for statement, text := range map[**sql.Stmt]string{
		&db.begin:    "BEGIN IMMEDIATE",
		&db.commit:   "COMMIT",
		&db.rollback: "ROLLBACK",
		&db.put:      "INSERT OR REPLACE INTO records (key, expires, value, sum) VALUES (?, ?, ?, ?)",
		&db.remove:   "DELETE FROM records WHERE key = ?",
		&db.expire:   "DELETE FROM records WHERE key > ? AND key <= ? AND expires <= ?",
		&db.one:      "SELECT key, expires, value, sum FROM records WHERE key = ?",
		&db.many:     fmt.Sprintf("SELECT key, expires, value, sum FROM records WHERE key >= ? AND key < ? ORDER BY key LIMIT %d", page),
		&db.pageEnd:  fmt.Sprintf("SELECT coalesce(max(key), '') FROM (SELECT key FROM records WHERE key > ? ORDER BY key LIMIT %d)", page),
	} {
		if *statement, err = db.conn.Prepare(text); err != nil {
			return err
		}
	}
	return nil
}

// connect makes one connection to a database. Its path may contain anything.
func connect(path string, pragmas ...string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive of Windows
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: slashed, RawQuery: url.Values{"_pragma": pragmas}.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// close merges the log into the database.
func (db *database) close() error {
	if db.conn == nil {
		return nil
	}
	return databaseError(db.conn.Close(), db.path)
}

// check reads the whole database once, but for the values, and returns ErrCorrupt if its pages
// or the order of its keys are damaged.
func (db *database) check() error {
	var found string
	if err := db.conn.QueryRow("PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, db.path, strings.Join(strings.Fields(found), " "))
	}
	return nil
}

// write makes all changes or none.
func (db *database) write(all []*write) error { return databaseError(db.transaction(all), db.path) }

func (db *database) transaction(all []*write) (err error) {
	if len(all) == 1 {
		return db.change(all[0]) // a transaction of its own
	}
	if _, err = db.begin.Exec(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = db.rollback.Exec()
		}
	}()
	for _, w := range all {
		if err = db.change(w); err != nil {
			return err
		}
	}
	_, err = db.commit.Exec()
	return err
}

func (db *database) change(w *write) (err error) {
	if w.value == nil {
		_, err = db.remove.Exec(w.key)
	} else {
		_, err = db.put.Exec(w.key, w.expires, w.value, checksum(w.key, w.record))
	}
	return err
}

// sweep removes what expired before a moment from the page of keys that follows one, and returns
// the last key of the page; empty behind the last page.
func (db *database) sweep(after string, before int64) (last string, err error) {
	if err = db.pageEnd.QueryRow(after).Scan(&last); err == nil && last != "" {
		_, err = db.expire.Exec(after, last, before)
	}
	if err != nil {
		return after, databaseError(err, db.path)
	}
	return last, nil
}

// row is a record with its key.
type row struct {
	key string
	record
}

// scan reads a row, and returns ErrCorrupt for one that is not what was written.
func (db *database) scan(from interface{ Scan(...any) error }) (r row, err error) {
	var sum uint32
	if err := from.Scan(&r.key, &r.expires, &r.value, &sum); err != nil {
		return r, databaseError(err, db.path)
	}
	if checksum(r.key, r.record) != sum {
		return r, fmt.Errorf("%w: a record in %s has changed", ErrCorrupt, db.path)
	}
	if r.value == nil {
		r.value = []byte{}
	}
	return r, nil
}

// get returns the record of the key.
func (db *database) get(key string) (record, error) {
	r, err := db.scan(db.one.QueryRow(key))
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, nil
	}
	return r.record, err
}

// list returns a page of the records from a key on whose keys begin with prefix, which ends
// with a slash.
func (db *database) list(prefix, from string) (all []row, err error) {
	end := strings.TrimSuffix(prefix, "/") + "0" // the byte after a slash
	rows, err := db.many.Query(from, end)
	if err != nil {
		return nil, databaseError(err, db.path)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := db.scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, databaseError(rows.Err(), db.path)
}

// after returns the key where the page behind rows begins, or empty if these are the last.
func after(rows []row) string {
	if len(rows) < page {
		return ""
	}
	return rows[len(rows)-1].key + "\x00"
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key string, r record) uint32 {
	var expires [8]byte
	binary.LittleEndian.PutUint64(expires[:], uint64(r.expires))
	sum := crc32.Update(0, castagnoli, []byte(key))
	sum = crc32.Update(sum, castagnoli, expires[:])
	return crc32.Update(sum, castagnoli, r.value)
}

// databaseError gives an error of SQLite its kind.
func databaseError(err error, path string) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch code := e.Code(); {
	case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_SHMSIZE:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
