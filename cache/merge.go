package cache

import (
	"errors"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// merger copies SQLite's log into the database while the writer goes on, on a connection of its own. The writer
// stops only for what it wrote meanwhile, and then begins the log anew.
type merger struct {
	conn *sqlite.Conn
	file *os.File   // the database, to flush it; closed last, as that ends the locks of SQLite in this process
	most int64      // pages of the log at which the writer waits
	busy bool       // copy runs
	done chan error // the result of copy
}

func (m *merger) open(path, synchronous string, pages int64) (err error) {
	m.most, m.done = pages, make(chan error, 1)
	if m.conn, err = sqlite.OpenConn(path, sqlite.OpenReadWrite); err != nil {
		return err
	}
	if err := sqlitex.ExecuteTransient(m.conn, "PRAGMA "+synchronous, nil); err != nil {
		return err
	}
	m.file, err = os.OpenFile(path, os.O_RDWR, 0)
	return err
}

// copy copies what is in the log, and flushes it: SQLite would leave that to the end of the merge.
func (m *merger) copy() {
	err := checkpoint(m.conn)
	if err == nil {
		err = m.file.Sync()
	}
	m.done <- err
}

// checkpoint copies what is in the log into the database.
func checkpoint(conn *sqlite.Conn) error {
	return sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(PASSIVE)", nil)
}

// merge has the log merged when it is three quarters full, and waits for that when it is full.
func (db *database) merge() error {
	m := &db.merger
	pages, err := db.logged()
	switch {
	case err != nil:
		return databaseError(err, db.path)
	case pages >= m.most:
		if m.busy {
			err = <-m.done
		}
		return db.merged(err)
	case pages >= m.most*3/4 && !m.busy:
		m.busy = true
		go m.copy()
	}
	return nil
}

// merged merges the rest after a copy. The next write begins the log anew.
func (db *database) merged(err error) error {
	db.merger.busy = false
	return databaseError(errors.Join(err, db.endReads(), checkpoint(db.conn)), db.path)
}

// logged returns how many pages the log has.
func (db *database) logged() (int64, error) {
	_, err := db.size.Step()
	pages := db.size.ColumnInt64(1)
	return pages, errors.Join(err, db.size.Reset())
}

// close ends the connection, but not the file.
func (m *merger) close() error {
	if m.busy {
		<-m.done
	}
	if m.conn == nil {
		return nil
	}
	return m.conn.Close()
}
