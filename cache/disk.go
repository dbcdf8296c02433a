package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// disk keeps all records in SQLite, with Ristretto in front to answer fast.
//
// One goroutine reads and writes the file. An update takes its step and queues the new record;
// until that is written, other calls find it among the pending ones. When a caller waits for a
// record, all that are queued are written together.
//
// Ristretto may drop a Set, miss a key that was just set, and keep the first of two values. So
// each update counts up the generation of its key, and a remembered record counts only in the
// generation that it was read or written in. Keys share generations by hash, which costs one of
// them a read of the file now and then.
type disk struct {
	now         func() int64
	log         *slog.Logger
	dir         *directory
	db          *database
	hot         *ristretto.Cache[string, *remembered]
	seed        maphash.Seed
	generations [1 << 16]atomic.Uint32
	shards      [1 << 10]shard
	queue       chan job
	calls       sync.RWMutex  // read-locked by each call that uses the queue, locked for good by close
	ended       chan struct{} // closed when the queue is empty for good
}

// remembered is a record and the generation in which it was the newest of its key.
type remembered struct {
	record
	generation uint32
}

// shard is some of the keys.
type shard struct {
	step    chan struct{} // full while a step is taken; unlike a mutex it can be waited for with a context
	mu      sync.Mutex
	pending map[string]*write // the newest of each key
}

// job is a change to be written, a query to be answered, or, without either, a caller who waits
// until all changes before are written.
type job struct {
	write *write
	query func()
}

// write is a change that waits to be written.
type write struct {
	disk *disk
	key  string
	record
	generation uint32

	done chan struct{} // closed when it is written or has failed
	err  error
}

// wait has the change written.
func (w *write) wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	default:
	}
	if w.disk.calls.TryRLock() { // else close has all written
		_ = w.disk.enqueue(job{})
		w.disk.calls.RUnlock()
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	maxQueued = 16384 // jobs
	maxWrites = 1024  // changes in one transaction
)

var errBusy = errors.New("too many changes are waiting to be written")

func openDisk(o Options) (*disk, error) {
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	d := &disk{
		now: o.Now, log: o.Log, dir: dir, seed: maphash.MakeSeed(), queue: make(chan job, maxQueued), ended: make(chan struct{}),
	}
	for i := range d.shards {
		d.shards[i] = shard{step: make(chan struct{}, 1), pending: map[string]*write{}}
	}
	if err := d.open(o); err != nil {
		return nil, errors.Join(err, d.closeFiles())
	}
	go d.work()
	return d, nil
}

func (d *disk) open(o Options) (err error) {
	if d.db, err = openDatabase(d.dir.database, o.Sync); err != nil {
		return err
	}
	d.hot, err = ristretto.NewCache(&ristretto.Config[string, *remembered]{
		NumCounters:        max(o.Bytes/64, 1024),
		MaxCost:            o.Bytes,
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	if err != nil {
		return err
	}
	d.dir.warn(d.log)
	return d.dir.mark(stateOpen)
}

// slots returns what a key shares with others.
func (d *disk) slots(key string) (*atomic.Uint32, *shard) {
	hash := maphash.String(d.seed, key)
	return &d.generations[hash%uint64(len(d.generations))], &d.shards[hash%uint64(len(d.shards))]
}

func (d *disk) get(ctx context.Context, key string) ([]byte, error) {
	if !d.calls.TryRLock() {
		return nil, ErrClosed
	}
	defer d.calls.RUnlock()
	r, _, err := d.current(ctx, key)
	return r.at(d.now()), err
}

// current returns the newest record of the key, and the write that it waits for, if any.
func (d *disk) current(ctx context.Context, key string) (record, *write, error) {
	generation, s := d.slots(key)
	before := generation.Load()
	if r, ok := d.hot.Get(key); ok && r.generation == before {
		return r.record, nil, nil
	}
	s.mu.Lock()
	w := s.pending[key]
	s.mu.Unlock()
	if w != nil {
		return w.record, w, nil
	}
	r, err := query(ctx, d, func() (record, error) { return d.db.get(key) })
	if err == nil && r.value != nil {
		d.remember(key, r, before)
	}
	return r, nil, err
}

// remembering is what a record in Ristretto takes besides the bytes of its value.
const remembering = 256

func (d *disk) remember(key string, r record, generation uint32) {
	d.hot.Set(key, &remembered{r, generation}, int64(len(r.value))+remembering)
}

func (d *disk) update(ctx context.Context, key string, step Step) error {
	w, err := d.change(ctx, key, step)
	if err != nil || w == nil || w.add(ctx) {
		return err
	}
	return w.wait(ctx)
}

// change takes a step, and returns the write that makes durable what came out of it; nil if
// that is durable.
func (d *disk) change(ctx context.Context, key string, step Step) (*write, error) {
	if !d.calls.TryRLock() {
		return nil, ErrClosed
	}
	defer d.calls.RUnlock()
	generation, s := d.slots(key)
	select {
	case s.step <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.step }()
	old, last, err := d.current(ctx, key)
	if err != nil {
		return nil, err
	}
	next, changed := old.apply(d.now(), step)
	if !changed {
		return last, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &write{disk: d, key: key, record: next, generation: generation.Add(1), done: make(chan struct{})}
	if err := d.enqueue(job{write: w}); err != nil {
		return nil, err
	}
	s.pending[key] = w
	return w, nil
}

func (d *disk) enqueue(j job) error {
	select {
	case d.queue <- j:
		return nil
	default:
		return errBusy
	}
}

// query answers a query for as long as ctx lasts.
func query[T any](ctx context.Context, d *disk, run func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	var found T
	var failed error
	if err := d.enqueue(job{query: func() { found, failed = run(); close(done) }}); err != nil {
		return result, err
	}
	select {
	case <-done:
		return found, failed
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// sweepInterval is how often changes are written that no caller waits for, and at least a page of
// records is checked for expired ones. Two are checked for each that is written besides, so that
// the expired ones stay fewer than the others.
const sweepInterval = 250 * time.Millisecond

// work does the jobs until the queue is closed.
func (d *disk) work() {
	defer close(d.ended)
	refusing := outage{log: d.log, begins: "the data directory takes no writes", ends: "the data directory takes writes again"}
	failing := outage{log: d.log, begins: "expired records cannot be removed", ends: "expired records are removed again"}
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
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
		}
		if len(writes) > 0 && (awaited || len(writes) >= maxWrites) {
			refusing.report(d.write(writes))
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
	alone := err != nil && len(all) > 1 && !errors.Is(err, ErrFull)
	for _, w := range all {
		w.err = err
		if alone {
			w.err = d.db.write([]*write{w})
		}
		d.settle(w)
	}
	return err
}

// settle ends a write.
func (d *disk) settle(w *write) {
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

func (d *disk) each(ctx context.Context, prefix string, visit func(string, []byte) bool) error {
	for from := prefix; from != ""; {
		if !d.calls.TryRLock() {
			return ErrClosed
		}
		rows, err := query(ctx, d, func() ([]row, error) { return d.db.list(prefix, from) })
		d.calls.RUnlock()
		if err != nil {
			return err
		}
		for _, r := range rows {
			if value := r.at(d.now()); value != nil && !visit(r.key, value) {
				return nil
			}
		}
		from = after(rows)
	}
	return nil
}

// ready makes a write, as only that tells. No table can have its key, as it has no slash.
func (d *disk) ready(ctx context.Context) error {
	return d.update(ctx, "ready", func(old []byte, _ int64) ([]byte, int64) {
		if string(old) == "tick" {
			return []byte("tock"), math.MaxInt64
		}
		return []byte("tick"), math.MaxInt64
	})
}

// grace is how long an expired record is kept, so that a clock that is ahead for less than that
// forgets nothing.
const grace = int64(time.Hour / time.Millisecond)

// close waits for calls in progress and for their pending writes.
func (d *disk) close() error {
	d.calls.Lock() // never unlocked: later calls find it closed
	close(d.queue)
	<-d.ended
	return d.closeFiles()
}

// closeFiles closes what open has opened, in the opposite order.
func (d *disk) closeFiles() error {
	if d.hot != nil {
		d.hot.Close()
	}
	var err error
	if d.db != nil {
		err = d.db.close()
	}
	return errors.Join(err, d.dir.close())
}

// outage logs when something begins to fail and when it works again, at most every ten seconds: a
// disk that is just about full does both all the time.
type outage struct {
	log          *slog.Logger
	begins, ends string
	failing      bool
	said         time.Time
}

func (o *outage) report(err error) {
	const calm = 10 * time.Second
	if (err != nil) == o.failing || time.Since(o.said) < calm {
		return
	}
	o.failing, o.said = err != nil, time.Now()
	if o.failing {
		o.log.Warn(o.begins, "cause", err.Error())
	} else {
		o.log.Info(o.ends)
	}
}
