package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// schema is the table as SQLite keeps it. The sum is over all other columns, as SQLite would return
// what has changed on the drive.
const (
	schema = `CREATE TABLE records (
	key TEXT PRIMARY KEY, expires INTEGER NOT NULL, written INTEGER NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID`
	columns = "key, expires, written, value, sum"
)

// page is how many records are read at once by what reads many.
const page = 256

// pageSize is that of SQLite, in bytes.
const pageSize = 4096

// database is the SQLite file, for one goroutine at a time. It reads and writes by one connection, since
// another would read its pages anew after each change.
type database struct {
	path string
	conn *sqlite.Conn

	damage  error  // what a sweep has found
	scratch []byte // of sum

	merger merger

	beginReads, begin, commit, rollback, put, remove, expire, one, many, every, size *sqlite.Stmt
}

// openDatabase opens a database that was verified. So that the log does not fill a small disk, it is
// merged when it has an eighth of the room that is free now.
func openDatabase(path string, sync bool, format int, free int64) (*database, error) {
	db := &database{path: path}
	if err := db.open(sync, format, free); err != nil {
		return nil, errors.Join(databaseError(err, path), db.close())
	}
	return db, nil
}

func (db *database) open(sync bool, format int, free int64) (err error) {
	synchronous := "NORMAL" // flushes at checkpoints, so a power cut takes only the newest
	if sync {
		synchronous = "FULL"
	}
	if db.conn, err = sqlite.OpenConn(db.path, sqlite.OpenReadWrite); err != nil {
		return err
	}
	db.conn.SetBusyTimeout(5 * time.Second)
	logPages := max(512<<10, min(free/8, 16<<20)) / pageSize
	for _, pragma := range []string{fmt.Sprint("page_size=", pageSize), "synchronous=" + synchronous, "cache_size=-8192", "temp_store=MEMORY",
		"wal_autocheckpoint=0", fmt.Sprint("journal_size_limit=", 2*logPages*pageSize)} {
		if err := sqlitex.ExecuteTransient(db.conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	if mode, err := sqlitex.ResultText(db.conn.Prep("PRAGMA journal_mode=WAL")); err != nil {
		return err
	} else if mode != "wal" { // SQLite says so instead of failing
		return errNoLog
	}
	if err := db.make(format); err != nil {
		return err
	}
	for statement, text := range map[**sqlite.Stmt]string{
		&db.size:       "PRAGMA wal_checkpoint(NOOP)",
		&db.beginReads: "BEGIN",
		&db.begin:      "BEGIN IMMEDIATE",
		&db.commit:     "COMMIT",
		&db.rollback:   "ROLLBACK",
		&db.put:        "INSERT OR REPLACE INTO records (" + columns + ") VALUES (?, ?, ?, ?, ?)",
		&db.remove:     "DELETE FROM records WHERE key = ?",
		&db.expire:     "DELETE FROM records WHERE key > ? AND key <= ? AND expires <= ?",
		&db.one:        "SELECT " + columns + " FROM records WHERE key = ?",
		&db.many:       fmt.Sprintf("SELECT %s FROM records WHERE key >= ? AND key < ? ORDER BY key LIMIT %d", columns, page),
		&db.every:      fmt.Sprintf("SELECT %s FROM records WHERE key > ? ORDER BY key LIMIT %d", columns, page),
	} {
		if *statement, err = db.conn.Prepare(text); err != nil {
			return err
		}
	}
	return db.merger.open(db.path, "synchronous="+synchronous, logPages)
}

var errNoLog = errors.New("SQLite cannot keep a log on this file system: it lacks shared memory, as over a network")

// make makes the table of a new database, and notes the format of its records.
func (db *database) make(format int) error {
	if empty, err := db.isNew(); err != nil || !empty {
		return err
	}
	return sqlitex.ExecuteScript(db.conn, fmt.Sprintf("PRAGMA user_version=%d; %s", format, schema), nil)
}

// repair removes damaged records, moves the log into the database, and empties the log. Otherwise the rest of a broken
// write in the log would later look like damage of newer writes.
func (db *database) repair(damaged []string) error {
	for _, key := range damaged {
		if err := db.write([]*write{{key: key}}); err != nil {
			return err
		}
	}
	return databaseError(sqlitex.ExecuteTransient(db.conn, "PRAGMA wal_checkpoint(TRUNCATE)", nil), db.path)
}

// close merges the log into the database.
func (db *database) close() error {
	if db.conn == nil {
		return nil
	}
	err := errors.Join(db.merger.close(), db.conn.Close())
	if db.merger.file != nil {
		err = errors.Join(err, db.merger.file.Close())
	}
	return databaseError(err, db.path)
}

// write makes all changes or none.
func (db *database) write(all []*write) error { return databaseError(db.transaction(all), db.path) }

func (db *database) transaction(all []*write) (err error) {
	if err = db.endReads(); err != nil {
		return err
	}
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
	db.put.BindInt64(3, w.written)
	db.put.BindBytes(4, w.value)
	db.put.BindInt64(5, db.sum(w.key, w.record))
	return run(db.put)
}

// run executes a statement that returns no rows.
func run(statement *sqlite.Stmt) error {
	_, err := statement.Step()
	return errors.Join(err, statement.Reset())
}

// sweep reads the page of records after a key, and removes those that expired before a moment, unless a record of the
// page is damaged. It returns the last key of the page, which is empty after the last page.
func (db *database) sweep(after string, before int64) (last string, err error) {
	if err := db.endReads(); err != nil {
		return after, databaseError(err, db.path)
	}
	db.every.BindText(1, after)
	rows, err := db.read(db.every)
	if err != nil {
		if errors.Is(err, ErrCorrupt) {
			db.damage = err
		}
		return after, err
	}
	if len(rows) == 0 {
		return "", nil
	}
	last = rows[len(rows)-1].key
	if slices.ContainsFunc(rows, func(r row) bool { return r.expires <= before }) {
		db.expire.BindText(1, after)
		db.expire.BindText(2, last)
		db.expire.BindInt64(3, before)
		err = databaseError(run(db.expire), db.path)
	}
	return last, err
}

// row is a record with its key.
type row struct {
	key string
	record
}

// next reads the next row of a query, into the memory of its old value; none is left if more is false.
// A row that is not what was written comes with ErrCorrupt.
func (db *database) next(query *sqlite.Stmt, r *row) (more bool, err error) {
	if more, err = query.Step(); err != nil || !more {
		return false, databaseError(err, db.path)
	}
	r.key, r.expires, r.written = query.ColumnText(0), query.ColumnInt64(1), query.ColumnInt64(2)
	if n := query.ColumnLen(3); r.value == nil || n > cap(r.value) {
		r.value = make([]byte, n)
	} else {
		r.value = r.value[:n]
	}
	query.ColumnBytes(3, r.value)
	if db.sum(r.key, r.record) != query.ColumnInt64(4) {
		return true, fmt.Errorf("%w: a record in %s has changed", ErrCorrupt, db.path)
	}
	return true, nil
}

// endReads ends the transaction of the reads since the last write or sweep. They share one, as to begin and end a
// transaction costs more than to read a record.
func (db *database) endReads() error {
	if db.conn.AutocommitEnabled() {
		return nil
	}
	return run(db.commit)
}

// get returns the record of the key. Once a record was found damaged, no record may mean that it
// was the one of this key.
func (db *database) get(key string) (record, error) {
	if db.conn.AutocommitEnabled() {
		if err := run(db.beginReads); err != nil {
			return record{}, databaseError(err, db.path)
		}
	}
	defer db.one.Reset()
	db.one.BindText(1, key)
	var r row
	found, err := db.next(db.one, &r)
	if err != nil {
		return record{}, err
	}
	if !found {
		err = db.damage
	}
	return r.record, err
}

// list returns a page of the records from a key on whose keys begin with prefix, which ends
// with a slash.
func (db *database) list(prefix, from string) ([]row, error) {
	db.many.BindText(1, from)
	db.many.BindText(2, strings.TrimSuffix(prefix, "/")+"0") // the byte after a slash
	return db.read(db.many)
}

// read returns all rows of a query.
func (db *database) read(query *sqlite.Stmt) (all []row, err error) {
	defer query.Reset()
	for {
		var r row
		more, err := db.next(query, &r)
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

// sum is the checksum of a record.
func (db *database) sum(key string, r record) int64 {
	b := append(db.scratch[:0], key...)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.expires))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.written))
	db.scratch = append(b, r.value...)
	return int64(crc32.Checksum(db.scratch, castagnoli))
}

// databaseError gives an error of SQLite its kind.
func databaseError(err error, path string) error {
	if err == nil || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFormat) || errors.Is(err, errNoLog) {
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
