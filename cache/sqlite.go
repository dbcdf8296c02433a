package cache

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

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

// database is the SQLite file. One goroutine writes, and several read.
type database struct {
	path            string
	writer, readers *sql.DB
	written         atomic.Int64 // changes, since a sweep last took it

	begin, commit, rollback, put, remove, expire *sql.Stmt // of the writer
	one, many, behind                            *sql.Stmt // of the readers
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
	if db.writer, err = connect(db.path, 1, "busy_timeout(5000)", "page_size(4096)", "journal_mode(WAL)", synchronous,
		"cache_size(-8192)", "wal_autocheckpoint(4000)", "journal_size_limit(33554432)", "temp_store(MEMORY)"); err != nil {
		return err
	}
	if err := db.check(); err != nil {
		return err
	}
	if _, err := db.writer.Exec(schema); err != nil {
		return err
	}
	if db.readers, err = connect(db.path, maxReading, "busy_timeout(5000)", "query_only(ON)", "cache_size(-1024)"); err != nil {
		return err
	}
	for _, s := range []struct {
		statement **sql.Stmt
		of        *sql.DB
		text      string
	}{
		{&db.begin, db.writer, "BEGIN IMMEDIATE"},
		{&db.commit, db.writer, "COMMIT"},
		{&db.rollback, db.writer, "ROLLBACK"},
		{&db.put, db.writer, "INSERT OR REPLACE INTO records (key, expires, value, sum) VALUES (?, ?, ?, ?)"},
		{&db.remove, db.writer, "DELETE FROM records WHERE key = ?"},
		{&db.expire, db.writer, "DELETE FROM records WHERE key >= ? AND key < ? AND expires <= ?"},
		{&db.one, db.readers, "SELECT key, expires, value, sum FROM records WHERE key = ?"},
		{&db.many, db.readers, fmt.Sprintf("SELECT key, expires, value, sum FROM records WHERE key >= ? AND key < ? ORDER BY key LIMIT %d", page)},
		{&db.behind, db.readers, fmt.Sprintf("SELECT key FROM records WHERE key >= ? ORDER BY key LIMIT 1 OFFSET %d", page)},
	} {
		if *s.statement, err = s.of.PrepareContext(context.Background(), s.text); err != nil {
			return err
		}
	}
	return nil
}

// connect makes the connections to a database. Its path may contain anything.
func connect(path string, connections int, pragmas ...string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive of Windows
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: slashed, RawQuery: url.Values{"_pragma": pragmas}.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// close closes the readers first, as the last connection merges the log into the database.
func (db *database) close() (err error) {
	for _, pool := range []*sql.DB{db.readers, db.writer} {
		if pool != nil {
			err = errors.Join(err, pool.Close())
		}
	}
	return databaseError(err, db.path)
}

// check reads the whole database once, but for the values, and returns ErrCorrupt if its pages
// or the order of its keys are damaged.
func (db *database) check() error {
	var found string
	if err := db.writer.QueryRow("PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, db.path, strings.Join(strings.Fields(found), " "))
	}
	return nil
}

// write makes all changes or none.
func (db *database) write(all []*write) error {
	err := db.transaction(all)
	if err == nil {
		db.written.Add(int64(len(all)))
	}
	return databaseError(err, db.path)
}

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
	switch {
	case w.key == "":
		_, err = db.expire.Exec(w.expired.from, w.expired.end(), w.expired.before)
	case w.value == nil:
		_, err = db.remove.Exec(w.key)
	default:
		_, err = db.put.Exec(w.key, w.expires, w.value, checksum(w.key, w.record))
	}
	return err
}

// keyRange is the keys from one on and before another, which is empty for the end of the table,
// and the expiry up to which their records go.
type keyRange struct {
	from, to string
	before   int64
}

// end is to as SQLite compares it: a blob comes after every text.
func (r keyRange) end() any {
	if r.to == "" {
		return []byte{}
	}
	return r.to
}

// page is the range of a page of keys.
func (db *database) page(from string) (keyRange, error) {
	r := keyRange{from: from}
	err := db.behind.QueryRow(from).Scan(&r.to)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return r, databaseError(err, db.path)
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

// after is the key where the page behind rows begins, or empty if these are the last.
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
