package cache

import (
	"errors"
	"runtime"
	"time"
)

// sweepInterval is how often changes are written that no caller waits for, and at least a page of
// records is checked for expired ones. Two are checked for each that is written besides, so that
// the expired ones stay fewer than the others.
const (
	sweepInterval = 250 * time.Millisecond
	watchInterval = time.Second
)

// work does the jobs until the queue is closed.
func (d *disk) work() {
	defer close(d.ended)
	refusing := outage{log: d.log, begins: "the data directory takes no writes", ends: "the data directory takes writes again"}
	failing := outage{log: d.log, begins: "expired records cannot be removed", ends: "expired records are removed again"}
	merging := outage{log: d.log, begins: "the log of the database grows: it cannot be merged", ends: "the log of the database is merged again"}
	ticker, watch := time.NewTicker(sweepInterval), time.NewTicker(watchInterval)
	defer ticker.Stop()
	defer watch.Stop()
	var writes []*write
	sweepFrom, unswept := "", 0
	for open := true; open; {
		awaited := false
		select {
		case j, more := <-d.queue:
			open, awaited = more, d.do(j, &writes) || !more
			// Rounds that add a change are worth another one; reads alone would delay the changes.
			for before := 0; len(writes) > before && len(writes) < maxWrites && d.more(); {
				before = len(writes)
				for n := len(d.queue); n > 0 && len(writes) < maxWrites; n-- {
					awaited = d.do(<-d.queue, &writes) || awaited
				}
			}
		case <-ticker.C:
			awaited, unswept = true, unswept+page
		case err := <-d.db.merger.done:
			merging.report(d.db.merged(err))
		case <-watch.C:
			_ = d.watch() // it is logged, and in the state
		}
		if len(writes) > 0 && (awaited || len(writes) >= maxWrites) {
			refusing.report(d.write(writes))
			merging.report(d.db.merge())
			unswept += 2 * len(writes)
			writes = nil
		}
		for ; unswept >= page; unswept -= page {
			var err error
			sweepFrom, err = d.db.sweep(sweepFrom, d.now()-grace)
			failing.report(err)
		}
	}
}

// more reports whether there is another job once the callers that can run have added theirs. The
// fewer transactions, the cheaper are their changes.
func (d *disk) more() bool {
	if len(d.queue) == 0 {
		runtime.Gosched()
	}
	return len(d.queue) > 0
}

// do answers a query, or keeps a change to be written, and reports whether a caller waits until
// the changes are.
func (d *disk) do(j job, writes *[]*write) (awaited bool) {
	switch {
	case j.query != nil:
		j.query()
	case j.write != nil:
		*writes = append(*writes, j.write)
	default:
		return true
	}
	return false
}

// write makes all changes in one transaction. A damaged page fails only those that touch it.
func (d *disk) write(all []*write) error {
	err := d.db.write(all)
	eachAgain := err != nil && len(all) > 1 && !errors.Is(err, ErrFull)
	for _, w := range all {
		w.err = err
		if eachAgain {
			w.err = d.db.write([]*write{w})
		}
		d.finish(w)
	}
	return err
}

// finish ends a write.
func (d *disk) finish(w *write) {
	if w.err == nil && w.value != nil {
		d.remember(w.key, w.record, w.generation)
	}
	_, s := d.slots(w.key)
	s.mu.Lock()
	if s.pending[w.key] == w {
		delete(s.pending, w.key)
	}
	s.mu.Unlock()
	close(w.done)
}
