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

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The table as SQLite keeps it. The sum is over the key, the expiry and the value, as SQLite
// would return a value that has changed on the drive.
const schema = `CREATE TABLE IF NOT EXISTS records (
	key TEXT PRIMARY KEY, expires INTEGER NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID`

// background is the context of statements. One that ended would cost each statement a
// goroutine, so callers wait beside them instead.
var background = context.Background()

// session is one connection to the database.
type session struct {
	conn       *sql.Conn
	database   string
	statements []*sql.Stmt
}

// openDatabase connects to a database. Its path may contain anything.
func openDatabase(path string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive of Windows
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: slashed}).String())
}

func newSession(db *sql.DB, database string, pragmas ...string) (*session, error) {
	conn, err := db.Conn(background)
	if err != nil {
		return nil, databaseError(err, database)
	}
	s := &session{conn: conn, database: database}
	for _, text := range pragmas {
		if err := s.exec("PRAGMA " + text); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// close closes the statements as well, without which SQLite would keep its files open.
func (s *session) close() error {
	var errs []error
	for _, statement := range s.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}

func (s *session) exec(text string) error {
	_, err := s.conn.ExecContext(background, text)
	return databaseError(err, s.database)
}

// check reads the whole database once, but for the values, and returns ErrCorrupt if its pages
// or the order of its keys are damaged.
func (s *session) check() error {
	var found string
	if err := s.conn.QueryRowContext(background, "PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return databaseError(err, s.database)
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, s.database, strings.Join(strings.Fields(found), " "))
	}
	return nil
}

func (s *session) prepare(text string, err *error) *sql.Stmt {
	if *err != nil {
		return nil
	}
	statement, failed := s.conn.PrepareContext(background, text)
	if *err = databaseError(failed, s.database); *err == nil {
		s.statements = append(s.statements, statement)
	}
	return statement
}

// reader runs one query at a time.
type reader struct {
	*session
	one, many, keys *sql.Stmt
}

// row is a record with its key.
type row struct {
	key string
	record
}

// after is the key where the page behind rows begins, or empty if these are the last.
func after(rows []row) string {
	if len(rows) < page {
		return ""
	}
	return rows[len(rows)-1].key + "\x00"
}

func newReader(db *sql.DB, database string) (*reader, error) {
	s, err := newSession(db, database, "busy_timeout=5000", "query_only=ON", "cache_size=-1024")
	if err != nil {
		return nil, err
	}
	r := &reader{session: s}
	r.one = s.prepare("SELECT expires, value, sum FROM records WHERE key = ?", &err)
	r.many = s.prepare(fmt.Sprintf("SELECT key, expires, value, sum FROM records WHERE key >= ? AND key < ? ORDER BY key LIMIT %d", page), &err)
	r.keys = s.prepare(fmt.Sprintf("SELECT key, expires FROM records WHERE key >= ? ORDER BY key LIMIT %d", page), &err)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return r, nil
}

// get returns the record of the key.
func (r *reader) get(key string) (found record, err error) {
	var sum uint32
	err = r.one.QueryRow(key).Scan(&found.expires, &found.value, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return record{}, nil
	case err != nil:
		return record{}, databaseError(err, r.database)
	}
	return found, r.check(key, &found, sum)
}

// check returns ErrCorrupt for a record that is not what was written.
func (r *reader) check(key string, found *record, sum uint32) error {
	if checksum(key, *found) != sum {
		return fmt.Errorf("%w: a record in %s has changed", ErrCorrupt, r.database)
	}
	if found.value == nil {
		found.value = []byte{}
	}
	return nil
}

// list returns a page of the records from a key on whose keys begin with prefix, which ends
// with a slash.
func (r *reader) list(prefix, from string) ([]row, error) {
	end := strings.TrimSuffix(prefix, "/") + "0" // the byte after a slash
	return r.rows(r.many, func(rows *sql.Rows, next *row) error {
		var sum uint32
		if err := rows.Scan(&next.key, &next.expires, &next.value, &sum); err != nil {
			return err
		}
		return r.check(next.key, &next.record, sum)
	}, from, end)
}

// expiries returns a page of all records from a key on, without their values.
func (r *reader) expiries(from string) ([]row, error) {
	return r.rows(r.keys, func(rows *sql.Rows, next *row) error {
		return rows.Scan(&next.key, &next.expires)
	}, from)
}

func (r *reader) rows(query *sql.Stmt, scan func(*sql.Rows, *row) error, args ...any) (all []row, err error) {
	rows, err := query.Query(args...)
	if err != nil {
		return nil, databaseError(err, r.database)
	}
	defer rows.Close()
	for rows.Next() {
		var next row
		if err := scan(rows, &next); err != nil {
			return nil, databaseError(err, r.database)
		}
		all = append(all, next)
	}
	return all, databaseError(rows.Err(), r.database)
}

func checksum(key string, r record) uint32 {
	var expires [8]byte
	binary.LittleEndian.PutUint64(expires[:], uint64(r.expires))
	sum := crc32.Update(0, castagnoli, []byte(key))
	sum = crc32.Update(sum, castagnoli, expires[:])
	return crc32.Update(sum, castagnoli, r.value)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// databaseError gives an error of SQLite its kind.
func databaseError(err error, database string) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch code := e.Code(); {
	case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, database, err)
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_SHMSIZE:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%s: %w", database, err)
}
