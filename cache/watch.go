package cache

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A watch looks at a directory once a second while it is open. The file of the lock is to say
// which log is the newest, and tables are to be what was written: Badger takes a block that has
// gone bad for one without the key, and a compaction then leaves out the rest of its table, both
// without a word. So one table after the other is read again, and when one is bad nothing more
// is read or written there.
type watch struct {
	disk *Disk
	to   *slog.Logger
	quit chan struct{}
	done chan struct{}
	once sync.Once

	looking sync.Mutex
	log     int    // that is written down as the newest
	table   uint64 // that was read last
	bad     atomic.Pointer[error]
	noted   bool // that one is bad, in the file of the lock
}

const watchInterval = time.Second

// newWatch takes it that the newest log is written down.
func newWatch(d *Disk, log int, to *slog.Logger) *watch {
	w := &watch{disk: d, log: log, to: to, quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// stop returns when nobody looks any more. It must come before the directory is closed.
func (w *watch) stop() {
	if w != nil {
		w.once.Do(func() { close(w.quit) })
		<-w.done
	}
}

func (w *watch) run() {
	defer close(w.done)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
			w.look()
		}
	}
}

// look does all that is due. What cannot be written down is the next time.
func (w *watch) look() {
	w.looking.Lock()
	defer w.looking.Unlock()
	if w.damage() == nil {
		if log, err := markOpen(w.disk.lock, w.disk.dir, w.log); err == nil {
			w.log = log
		}
		w.readNext()
	}
	if w.damage() != nil && !w.noted {
		w.noted = say(w.disk.lock, saysDamaged) == nil
	}
}

// damage is what was found, nil if nothing was.
func (w *watch) damage() error {
	if w == nil || w.bad.Load() == nil {
		return nil
	}
	return *w.bad.Load()
}

// readNext reads one table. A file that is not there or does not open is none that went bad: a
// compaction may just have removed it, or somebody has moved the directory for a while.
func (w *watch) readNext() {
	ids := w.tables()
	if len(ids) == 0 {
		return
	}
	i, _ := slices.BinarySearch(ids, w.table+1)
	w.table = ids[i%len(ids)]
	_, err := inspectTable(w.disk.dir, w.table, new(bytes.Buffer))
	if !errors.Is(err, ErrCorrupt) || !slices.Contains(w.tables(), w.table) {
		return
	}
	w.to.Error("data directory: a table has gone bad: what has to ask the disk is refused from now on", "table", w.table, "cause", err.Error())
	w.bad.Store(&err)
}

// tables are those that Badger has now, in order.
func (w *watch) tables() (ids []uint64) {
	for _, t := range w.disk.db.Tables() {
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	return ids
}
