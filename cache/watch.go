package cache

import (
	"sync"
	"time"
)

// A watch looks at a directory once a second while it is open: the file of the lock is to say
// which log is the newest.
type watch struct {
	disk *Disk
	quit chan struct{}
	done chan struct{}
	once sync.Once

	looking sync.Mutex
	log     int // that is written down as the newest
}

const watchInterval = time.Second

// newWatch takes it that the newest log is written down.
func newWatch(d *Disk, log int) *watch {
	w := &watch{disk: d, log: log, quit: make(chan struct{}), done: make(chan struct{})}
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

// look does all that is due. What fails is done the next time.
func (w *watch) look() {
	w.looking.Lock()
	defer w.looking.Unlock()
	if log, err := markOpen(w.disk.lock, w.disk.dir, w.log); err == nil {
		w.log = log
	}
}
