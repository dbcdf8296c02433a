package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/filelock"
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
	hot         *Recent[*remembered]
	seed        maphash.Seed
	generations [1 << 16]atomic.Uint32
	shards      [1 << 10]shard
	queue       chan job
	calls       sync.RWMutex // read-locked by each call that uses the queue, locked for good by close
	state       atomic.Pointer[State]
	replaced    outage
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
	found, err := verify(d.dir.database, o.Format, o.Now())
	if err != nil {
		return err
	}
	if n := len(found.damaged); n > 0 && !d.dir.accepts {
		return d.dir.acceptable(fmt.Errorf("%w: %d records in %s have changed", ErrCorrupt, n, d.dir.database))
	}
	d.dir.warn(d.log, found)
	if d.dir.open() || d.dir.accepts { // the log is in order before it is moved into the database
		if err := d.dir.mark(stateClosed); err != nil {
			return err
		}
	}
	if d.db, err = openDatabase(d.dir.database, o.Sync, o.Format, d.dir.free()); err != nil {
		return err
	}
	if err := d.db.repair(found.damaged); err != nil {
		return err
	}
	if d.hot, err = NewRecent[*remembered](o.Bytes); err != nil {
		return err
	}
	// With a write in it, the log can be told from one that damage has emptied.
	if err := d.db.write([]*write{{key: readyKey, record: record{[]byte("tick"), math.MaxInt64, d.now()}}}); err != nil {
		return err
	}
	if err := d.dir.opened(); err != nil {
		return err
	}
	d.replaced = outage{log: d.log, begins: "the data directory was removed, moved or replaced: its records cannot be used", ends: "the data directory is back"}
	return d.watch()
}

// slots returns what a key shares with others.
func (d *disk) slots(key string) (*atomic.Uint32, *shard) {
	hash := maphash.String(d.seed, key)
	return &d.generations[hash%uint64(len(d.generations))], &d.shards[hash%uint64(len(d.shards))]
}

// begin begins a call, which has to unlock d.calls in the end.
func (d *disk) begin() error {
	if !d.calls.TryRLock() {
		return ErrClosed
	}
	if d.state.Load().Replaced {
		d.calls.RUnlock()
		return ErrReplaced
	}
	return nil
}

func (d *disk) get(ctx context.Context, key string) ([]byte, error) {
	if err := d.begin(); err != nil {
		return nil, err
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
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.calls.RUnlock()
	generation, s := d.slots(key)
	select {
	case s.step <- struct{}{}:
	default: // the channel of ctx is made where it is waited for
		select {
		case s.step <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
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

func (d *disk) each(ctx context.Context, prefix, from string, visit func(string, []byte) bool) error {
	for from != "" {
		if err := d.begin(); err != nil {
			return err
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

// readyKey is of no table, as it has no slash.
const readyKey = "ready"

// ready makes a write, as only that tells.
func (d *disk) ready(ctx context.Context) error {
	if !d.calls.TryRLock() {
		return ErrClosed
	}
	_, err := query(ctx, d, func() (any, error) { return nil, errors.Join(d.watch(), d.db.damage) })
	d.calls.RUnlock()
	if err != nil {
		return err
	}
	return d.update(ctx, readyKey, func(old []byte, _ int64) ([]byte, int64) {
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
	if err := d.dir.same(); err != nil {
		return errors.Join(err, filelock.Release(d.dir.lock)) // closing the database would remove the log that the path names now
	}
	var err error
	if d.db != nil {
		err = d.db.close()
	}
	return errors.Join(err, d.dir.close())
}
