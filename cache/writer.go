package cache

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"sync/atomic"
	"time"
)

// writer is the one connection that writes. What waits for it is written in one transaction.
type writer struct {
	db      *sql.DB
	session *session
	now     func() int64
	log     *slog.Logger
	queue   chan *write
	ended   chan struct{}
	written atomic.Int64 // records, since a sweep last took it
	newest  int64        // the latest moment of a write on record
	noted   bool         // whether this process has put it there

	begin, commit, rollback, put, remove, expire *sql.Stmt

	refusing bool // what the log was told last
	said     time.Time
}

// write is one change that waits to be written. One without a key notes the time as well.
type write struct {
	key string
	record

	expired []string // keys to remove if they expired before
	before  int64

	done chan error // of room for one
}

// mostWrites is how many changes go into one transaction.
const mostWrites = 1024

// clockKey is the key of the latest moment of a write. No table can have it, as it has no
// slash.
const clockKey = "clock"

func openWriter(database string, o Options) (*writer, error) {
	db, err := openDatabase(database)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, now: o.Now, log: o.Log, queue: make(chan *write, mostWrites), ended: make(chan struct{})}
	if err := w.open(database, o.Sync); err != nil {
		return nil, errors.Join(err, w.close())
	}
	go w.run()
	return w, nil
}

func (w *writer) open(database string, sync bool) (err error) {
	synchronous := "synchronous=NORMAL" // flushes at checkpoints, so a power cut takes only the newest
	if sync {
		synchronous = "synchronous=FULL"
	}
	w.session, err = newSession(w.db, database, "busy_timeout=5000", "page_size=4096", "journal_mode=WAL", synchronous,
		"cache_size=-8192", "wal_autocheckpoint=4000", "journal_size_limit=33554432", "temp_store=MEMORY")
	if err != nil {
		return err
	}
	if err := w.session.check(); err != nil {
		return err
	}
	if err := w.session.exec(schema); err != nil {
		return err
	}
	for statement, text := range map[**sql.Stmt]string{
		&w.begin:    "BEGIN IMMEDIATE",
		&w.commit:   "COMMIT",
		&w.rollback: "ROLLBACK",
		&w.put:      "INSERT OR REPLACE INTO records (key, expires, value, sum) VALUES (?, ?, ?, ?)",
		&w.remove:   "DELETE FROM records WHERE key = ?",
		&w.expire:   "DELETE FROM records WHERE key = ? AND expires <= ?",
	} {
		*statement = w.session.prepare(text, &err)
	}
	if err != nil {
		return err
	}
	err = w.session.conn.QueryRowContext(background, "SELECT CAST(value AS INTEGER) FROM records WHERE key = ?", clockKey).Scan(&w.newest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return databaseError(err, database)
}

func (w *writer) reader() (*reader, error) { return newReader(w.db, w.session.database) }

// submit hands over a change. After an error it will not be written.
func (w *writer) submit(ctx context.Context, change *write) error {
	select {
	case w.queue <- change:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop returns when all that was submitted is written. Nothing may be submitted afterwards.
func (w *writer) stop() {
	close(w.queue)
	<-w.ended
}

func (w *writer) close() (err error) {
	if w.session != nil {
		err = w.session.close()
	}
	return errors.Join(err, w.db.Close())
}

func (w *writer) run() {
	defer close(w.ended)
	batch := make([]*write, 0, mostWrites)
	for first := range w.queue {
		batch = append(batch[:0], first)
		for len(batch) < mostWrites && len(w.queue) > 0 {
			batch = append(batch, <-w.queue)
		}
		err := w.write(batch)
		w.report(err)
		// A damaged page fails only the changes that touch it.
		alone := err != nil && len(batch) > 1 && !errors.Is(err, ErrFull)
		for _, change := range batch {
			if alone {
				err = w.write([]*write{change})
			}
			change.done <- err
		}
	}
}

// write makes all changes or none.
func (w *writer) write(batch []*write) error {
	err := w.transaction(batch)
	if err == nil {
		w.written.Add(int64(len(batch)))
	}
	return databaseError(err, w.session.database)
}

func (w *writer) transaction(batch []*write) (err error) {
	now := w.now()
	due := !w.noted || now >= w.newest+1000
	if one := batch[0]; len(batch) == 1 && one.key != "" && !due {
		return w.change(one) // a transaction of its own
	}
	if _, err = w.begin.Exec(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = w.rollback.Exec()
		}
	}()
	for _, change := range batch {
		if err = w.change(change); err != nil {
			return err
		}
		due = due || change.key == ""
	}
	if due {
		if err = w.note(now); err != nil {
			return err
		}
	}
	_, err = w.commit.Exec()
	return err
}

func (w *writer) change(c *write) (err error) {
	for _, key := range c.expired {
		if _, err = w.expire.Exec(key, c.before); err != nil {
			return err
		}
	}
	switch {
	case c.value != nil:
		_, err = w.put.Exec(c.key, c.expires, c.value, checksum(c.key, c.record))
	case c.key != "":
		_, err = w.remove.Exec(c.key)
	}
	return err
}

// note puts the latest moment of a write on record.
func (w *writer) note(now int64) error {
	w.newest = max(w.newest, now)
	clock := record{value: strconv.AppendInt(nil, w.newest, 10), expires: math.MaxInt64}
	_, err := w.put.Exec(clockKey, clock.expires, clock.value, checksum(clockKey, clock))
	w.noted = err == nil
	return err
}

// report logs that the directory takes no writes, and when it does again. On a disk that is just
// about full it would do so all the time, so it waits a while in between.
func (w *writer) report(err error) {
	const calm = 10 * time.Second
	refusing := err != nil
	if refusing == w.refusing || time.Since(w.said) < calm {
		return
	}
	w.refusing, w.said = refusing, time.Now()
	if refusing {
		w.log.Warn("the data directory takes no writes", "cause", err.Error())
	} else {
		w.log.Info("the data directory takes writes again")
	}
}
