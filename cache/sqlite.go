package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// schema is the table as SQLite keeps it. The sum is over the key, the expiry and the value, as
// SQLite would return a value that has changed on the drive.
const schema = `CREATE TABLE IF NOT EXISTS records (
	key TEXT PRIMARY KEY, expires INTEGER NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID`

// page is how many records are read at once by what reads many.
const page = 256

// database is the SQLite file, for one goroutine at a time. It has one connection, since another
// would read its pages anew after each change.
type database struct {
	path string
	conn *sqlite.Conn

	begin, commit, rollback, put, remove, expire, one, many, pageEnd *sqlite.Stmt
}

func openDatabase(path string, sync bool) (*database, error) {
	db := &database{path: path}
	if err := db.open(sync); err != nil {
		return nil, errors.Join(databaseError(err, path), db.close())
	}
	return db, nil
}

func (db *database) open(sync bool) (err error) {
	synchronous := "NORMAL" // flushes at checkpoints, so a power cut takes only the newest
	if sync {
		synchronous = "FULL"
	}
	if db.conn, err = sqlite.OpenConn(db.path, sqlite.OpenReadWrite); err != nil {
		return err
	}
	db.conn.SetBusyTimeout(5 * time.Second)
	for _, pragma := range []string{"page_size=4096", "journal_mode=WAL", "synchronous=" + synchronous, "cache_size=-8192",
		"wal_autocheckpoint=4000", "journal_size_limit=33554432", "temp_store=MEMORY"} {
		if err := sqlitex.ExecuteTransient(db.conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	if err := db.check(); err != nil {
		return err
	}
	if err := sqlitex.ExecuteTransient(db.conn, schema, nil); err != nil {
		return err
	}
	for statement, text := range map[**sqlite.Stmt]string{
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

// write makes all changes or none.
func (db *database) write(all []*write) error { return databaseError(db.transaction(all), db.path) }

func (db *database) transaction(all []*write) (err error) {
	if len(all) == 1 {
		return db.change(all[0]) // a transaction of its own
	}
	if err = run(db.begin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = run(db.rollback)
		}
	}()
	for _, w := range all {
		if err = db.change(w); err != nil {
			return err
		}
	}
	return run(db.commit)
}

func (db *database) change(w *write) error {
	if w.value == nil {
		db.remove.BindText(1, w.key)
		return run(db.remove)
	}
	db.put.BindText(1, w.key)
	db.put.BindInt64(2, w.expires)
	db.put.BindBytes(3, w.value)
	db.put.BindInt64(4, checksum(w.key, w.record))
	return run(db.put)
}

// run executes a statement that returns no rows.
func run(statement *sqlite.Stmt) error {
	_, err := statement.Step()
	return errors.Join(err, statement.Reset())
}

// sweep removes what expired before a moment from the page of keys that follows one, and returns
// the last key of the page; empty behind the last page.
func (db *database) sweep(after string, before int64) (last string, err error) {
	db.pageEnd.BindText(1, after)
	if last, err = sqlitex.ResultText(db.pageEnd); err == nil && last != "" {
		db.expire.BindText(1, after)
		db.expire.BindText(2, last)
		db.expire.BindInt64(3, before)
		err = run(db.expire)
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

// next reads the next row of a query; none is left if more is false. It returns ErrCorrupt for a
// row that is not what was written.
func (db *database) next(query *sqlite.Stmt) (r row, more bool, err error) {
	if more, err = query.Step(); err != nil || !more {
		return r, false, databaseError(err, db.path)
	}
	r.key, r.expires, r.value = query.ColumnText(0), query.ColumnInt64(1), make([]byte, query.ColumnLen(2))
	query.ColumnBytes(2, r.value)
	if checksum(r.key, r.record) != query.ColumnInt64(3) {
		return r, false, fmt.Errorf("%w: a record in %s has changed", ErrCorrupt, db.path)
	}
	return r, true, nil
}

// get returns the record of the key.
func (db *database) get(key string) (record, error) {
	defer db.one.Reset()
	db.one.BindText(1, key)
	r, _, err := db.next(db.one)
	return r.record, err
}

// list returns a page of the records from a key on whose keys begin with prefix, which ends
// with a slash.
func (db *database) list(prefix, from string) (all []row, err error) {
	defer db.many.Reset()
	db.many.BindText(1, from)
	db.many.BindText(2, strings.TrimSuffix(prefix, "/")+"0") // the byte after a slash
	for {
		r, more, err := db.next(db.many)
		if err != nil || !more {
			return all, err
		}
		all = append(all, r)
	}
}

// after returns the key where the page behind rows begins, or empty if these are the last.
func after(rows []row) string {
	if len(rows) < page {
		return ""
	}
	return rows[len(rows)-1].key + "\x00"
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key string, r record) int64 {
	var expires [8]byte
	binary.LittleEndian.PutUint64(expires[:], uint64(r.expires))
	sum := crc32.Update(0, castagnoli, []byte(key))
	sum = crc32.Update(sum, castagnoli, expires[:])
	return int64(crc32.Update(sum, castagnoli, r.value))
}

// databaseError gives an error of SQLite its kind.
func databaseError(err error, path string) error {
	if err == nil || errors.Is(err, ErrCorrupt) {
		return err
	}
	code := sqlite.ErrCode(err)
	err = fmt.Errorf("%w (%s)", err, code) // which says more than the text: SQLITE_IOERR_FSYNC
	switch {
	case code.ToPrimary() == sqlite.ResultCorrupt, code == sqlite.ResultNotADB:
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	case code.ToPrimary() == sqlite.ResultFull, code == sqlite.ResultIOErrSHMSize:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
