package cache

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A roomLog says when the directory takes no more writes, and when it does again.
type roomLog struct {
	to       *slog.Logger
	refusing atomic.Bool  // what it said last
	since    atomic.Int64 // from when there was room each time, in nanoseconds; 0 while there is none
}

// roomCalm is for how long there must have been room, each time it was looked for, before
// that is said: on a disk that is just about full it comes and goes, and each line takes some
// of it.
const roomCalm = 10 * time.Second

func (l *roomLog) saw(err error, now time.Time) {
	if err != nil {
		l.since.Store(0)
		if l.refusing.CompareAndSwap(false, true) {
			l.to.Warn("the data directory takes no writes", "cause", err.Error())
		}
		return
	}
	if !l.refusing.Load() {
		return
	}
	since := l.since.Load()
	if since == 0 || now.UnixNano() < since {
		l.since.Store(now.UnixNano())
	} else if now.UnixNano()-since >= int64(roomCalm) && l.refusing.CompareAndSwap(true, false) {
		l.to.Info("the data directory takes writes again")
	}
}
