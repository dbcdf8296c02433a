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
	short    atomic.Int64 // when there was too little room, in nanoseconds
}

// roomCalm is for how long there must have been room before that is said: on a disk that is
// just about full it comes and goes, and each line takes some of it.
const roomCalm = 10 * time.Second

func (l *roomLog) saw(err error, now time.Time) {
	switch {
	case err != nil:
		l.short.Store(now.UnixNano())
		if l.refusing.CompareAndSwap(false, true) {
			l.to.Warn("the data directory takes no writes", "cause", err.Error())
		}
	case now.UnixNano()-l.short.Load() >= int64(roomCalm) && l.refusing.CompareAndSwap(true, false):
		l.to.Info("the data directory takes writes again")
	}
}
