package main

import (
	"database/sql"
	"time"

	_ "modernc.org/sqlite"
)

// inSQLite keeps every send, on one connection, as a second writer would only find the file busy. Like mailgate by
// default it survives the end of the process, not a power cut.
func inSQLite(file string) (take, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE sends (mailbox TEXT, at INTEGER, PRIMARY KEY (mailbox, at)) WITHOUT ROWID;
		CREATE TABLE codes (mailbox TEXT PRIMARY KEY, code TEXT)`)
	if err != nil {
		return nil, err
	}
	return func(mailbox, code string) (limit string, wait time.Duration, err error) {
		tx, err := db.Begin()
		if err != nil {
			return "", 0, err
		}
		defer tx.Rollback()
		now := time.Now()
		for _, t := range tiers {
			var at int64 // of the send that has to leave the window
			err := tx.QueryRow("SELECT at FROM sends WHERE mailbox = ? ORDER BY at DESC LIMIT 1 OFFSET ?", mailbox, t.limit-1).Scan(&at)
			if err != nil && err != sql.ErrNoRows {
				return "", 0, err
			}
			if left := t.window - now.Sub(time.UnixMilli(at)); err == nil && left > wait {
				limit, wait = t.name, left
			}
		}
		if limit != "" {
			return limit, wait, nil
		}
		if _, err := tx.Exec("INSERT INTO sends VALUES (?, ?)", mailbox, now.UnixMilli()); err != nil {
			return "", 0, err
		}
		if _, err := tx.Exec("REPLACE INTO codes VALUES (?, ?)", mailbox, code); err != nil {
			return "", 0, err
		}
		return "", 0, tx.Commit()
	}, nil
}
