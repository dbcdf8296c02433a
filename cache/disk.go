package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// disk keeps all records in SQLite, with Ristretto in front to answer fast.
//
// One goroutine writes. An update takes its step, puts the new record in order to be written,
// and waits; until it is written, other calls find it among the pending ones.
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
	reading     chan struct{} // full of queries
	queue       chan *write
	calls       sync.RWMutex // read-locked by each call, locked for good by close
	quit        chan struct{}
	background  sync.WaitGroup
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

// write is a change that waits to be written. Without a key it removes expired records.
type write struct {
	key string
	record
	generation uint32
	expired    keyRange

	done chan struct{} // closed when it is written or has failed
	err  error
}

func (w *write) wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	maxReading = 4     // queries at once, so that a drive that hangs holds up no more
	maxQueued  = 16384 // changes that wait to be written
	maxWrites  = 1024  // changes in one transaction
)

var errBusy = errors.New("too many changes wait to be written")

func openDisk(o Options) (*disk, error) {
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	d := &disk{
		now: o.Now, log: o.Log, dir: dir, seed: maphash.MakeSeed(), reading: make(chan struct{}, maxReading),
		queue: make(chan *write, maxQueued), quit: make(chan struct{}),
	}
	for i := range d.shards {
		d.shards[i] = shard{step: make(chan struct{}, 1), pending: map[string]*write{}}
	}
	if err := d.open(o); err != nil {
		return nil, errors.Join(err, d.closeFiles())
	}
	d.background.Go(d.writeQueue)
	d.background.Go(d.sweepUntilClosed)
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

// current is the newest record of the key, and the write that it waits for, if any.
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
	r, err := read(ctx, d, func() (record, error) { return d.db.get(key) })
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
	if !d.calls.TryRLock() {
		return ErrClosed
	}
	defer d.calls.RUnlock()
	w, err := d.change(ctx, key, step)
	if err != nil || w == nil || w.add(ctx) {
		return err
	}
	return w.wait(ctx)
}

// change takes a step, and returns the write that makes durable what came out of it; nil if
// that is durable.
func (d *disk) change(ctx context.Context, key string, step Step) (*write, error) {
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
	w := &write{key: key, record: next, generation: generation.Add(1), done: make(chan struct{})}
	if err := d.enqueue(w); err != nil {
		return nil, err
	}
	s.pending[key] = w
	return w, nil
}

func (d *disk) enqueue(w *write) error {
	select {
	case d.queue <- w:
		return nil
	default:
		return errBusy
	}
}

// writeQueue writes what is in the queue, as much as possible in one transaction.
func (d *disk) writeQueue() {
	refusing := outage{log: d.log, begins: "the data directory takes no writes", ends: "the data directory takes writes again"}
	for first := range d.queue {
		all := append(make([]*write, 0, 16), first)
		for len(all) < maxWrites && len(d.queue) > 0 {
			all = append(all, <-d.queue)
		}
		err := d.db.write(all)
		refusing.report(err)
		// A damaged page fails only the changes that touch it.
		alone := err != nil && len(all) > 1 && !errors.Is(err, ErrFull)
		for _, w := range all {
			if alone {
				err = d.db.write([]*write{w})
			}
			d.settle(w, err)
		}
	}
}

// settle ends a write.
func (d *disk) settle(w *write, err error) {
	if w.err = err; w.key != "" {
		if err == nil && w.value != nil {
			d.remember(w.key, w.record, w.generation)
		}
		_, s := d.slots(w.key)
		s.mu.Lock()
		if s.pending[w.key] == w {
			delete(s.pending, w.key)
		}
		s.mu.Unlock()
	}
	close(w.done)
}

// read runs a query for as long as ctx lasts.
func read[T any](ctx context.Context, d *disk, query func() (T, error)) (result T, err error) {
	select {
	case d.reading <- struct{}{}:
	case <-ctx.Done():
		return result, ctx.Err()
	}
	if ctx.Done() == nil {
		defer func() { <-d.reading }()
		return query()
	}
	type answer struct {
		result T
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := query()
		<-d.reading
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		return a.result, a.err
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

func (d *disk) each(ctx context.Context, prefix string, visit func(string, []byte) bool) error {
	for from := prefix; from != ""; {
		if !d.calls.TryRLock() {
			return ErrClosed
		}
		rows, err := read(ctx, d, func() ([]row, error) { return d.db.list(prefix, from) })
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
	return d.update(ctx, "ready", func(old []byte) ([]byte, int64) {
		if string(old) == "tick" {
			return []byte("tock"), math.MaxInt64
		}
		return []byte("tick"), math.MaxInt64
	})
}

const (
	sweepInterval = time.Second
	// sweepRecords is how many records are looked at in each interval, and twice as many as
	// were written besides, so that the expired ones stay fewer than the others.
	sweepRecords = 1000
	// grace is how long an expired record is kept, so that a clock that is ahead for less
	// than that forgets nothing.
	grace = int64(time.Hour / time.Millisecond)
)

// sweepUntilClosed removes expired records a page at a time, all around the file.
func (d *disk) sweepUntilClosed() {
	failing := outage{log: d.log, begins: "expired records cannot be removed", ends: "expired records are removed again"}
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for from := ""; ; {
		select {
		case <-d.quit:
			close(d.queue) // no call and no sweep can use it any more
			return
		case <-ticker.C:
		}
		for left := sweepRecords + 2*d.db.written.Swap(0); left > 0; left -= page {
			next, err := d.sweep(from)
			failing.report(err)
			if from = next; err != nil || from == "" {
				break
			}
		}
	}
}

// sweep removes what has expired on the page at from, and returns where the next begins.
func (d *disk) sweep(from string) (next string, err error) {
	ctx := context.Background()
	r, err := read(ctx, d, func() (keyRange, error) { return d.db.page(from) })
	if err != nil {
		return from, err
	}
	r.before = d.now() - grace
	w := &write{expired: r, done: make(chan struct{})}
	if err = d.enqueue(w); err == nil {
		err = w.wait(ctx)
	}
	if err != nil {
		return from, err
	}
	return r.to, nil
}

// close waits for calls in progress and for their pending writes.
func (d *disk) close() error {
	d.calls.Lock() // never unlocked: later calls find it closed
	close(d.quit)
	d.background.Wait()
	return d.closeFiles()
}

// closeFiles closes what open has opened, in the opposite order.
func (d *disk) closeFiles() error {
	if d.hot != nil {
		d.hot.Close()
	}
	for range maxReading {
		d.reading <- struct{}{} // when no query is left
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
