package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// disk keeps all records in SQLite, with Ristretto in front to answer fast.
//
// Ristretto may drop a Set, miss a key that was just set, and keep the first of two values. So
// each write counts up the generation of its key, and a remembered record counts only in the
// generation that it was read or written in. Keys share generations by hash, which costs one of
// them a read of the file now and then.
type disk struct {
	now         func() int64
	log         *slog.Logger
	dir         *directory
	writer      *writer
	readers     chan *reader // those that are free
	opened      int
	hot         *ristretto.Cache[string, *remembered]
	seed        maphash.Seed
	generations [1 << 16]atomic.Uint32
	locks       [1 << 10]keyLock
	calls       sync.RWMutex // read-locked by each call, locked for good by close
	quit        chan struct{}
	swept       chan struct{}
}

// remembered is a record and the generation in which it was the newest of its key.
type remembered struct {
	record
	generation uint32
}

// keyLock holds the updates of its keys apart. Unlike a mutex it can be waited for as long as
// a context lasts.
type keyLock chan struct{}

const readers = 4

func openDisk(o Options) (*disk, error) {
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	d := &disk{
		now: o.Now, log: o.Log, dir: dir, seed: maphash.MakeSeed(), readers: make(chan *reader, readers),
		quit: make(chan struct{}), swept: make(chan struct{}),
	}
	for i := range d.locks {
		d.locks[i] = make(keyLock, 1)
	}
	if err := d.open(o); err != nil {
		return nil, errors.Join(err, d.closeFiles())
	}
	go d.sweepUntilClosed()
	return d, nil
}

func (d *disk) open(o Options) (err error) {
	if d.writer, err = openWriter(d.dir.database, o); err != nil {
		return err
	}
	for ; d.opened < readers; d.opened++ {
		r, err := d.writer.reader()
		if err != nil {
			return err
		}
		d.readers <- r
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
	d.warn()
	return d.dir.mark(stateOpen)
}

// warn logs what the engine cannot know about the records that it found.
func (d *disk) warn() {
	if d.dir.state == stateOpen {
		d.log.Warn("the data directory was not closed: the newest writes are read from the log as far as it is intact; after a power cut, or if the log was damaged, later ones are lost",
			"log", d.dir.database+"-wal")
	}
	if newest, now := d.writer.newest, d.now(); newest > now {
		d.log.Warn("the newest record lies in the future: the clock was ahead, or is behind; what was written then counts until the clock has passed it, and a reset forgets it",
			"newest", time.UnixMilli(newest).UTC(), "ahead", time.Duration(newest-now)*time.Millisecond)
	}
}

func (d *disk) generation(key string) (slot *atomic.Uint32, lock keyLock) {
	hash := maphash.String(d.seed, key)
	return &d.generations[hash%uint64(len(d.generations))], d.locks[hash%uint64(len(d.locks))]
}

func (d *disk) get(ctx context.Context, key string) ([]byte, error) {
	if !d.calls.TryRLock() {
		return nil, ErrClosed
	}
	defer d.calls.RUnlock()
	generation, _ := d.generation(key)
	r, err := d.current(ctx, key, generation)
	return r.at(d.now()), err
}

// current is the record of the key, from memory if it is there. While an update of the key is
// being written it is the old or the new one.
func (d *disk) current(ctx context.Context, key string, generation *atomic.Uint32) (record, error) {
	before := generation.Load()
	if r, ok := d.hot.Get(key); ok && r.generation == before {
		return r.record, nil
	}
	r, err := read(ctx, d, func(r *reader) (record, error) { return r.get(key) })
	if err == nil && r.value != nil {
		d.remember(key, r, before)
	}
	return r, err
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
	generation, lock := d.generation(key)
	select {
	case lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	abandoned := false
	defer func() {
		if !abandoned {
			<-lock
		}
	}()
	old, err := d.current(ctx, key, generation)
	if err != nil {
		return err
	}
	next, changed := old.apply(d.now(), step)
	if !changed {
		return nil
	}
	w := &write{key: key, record: next, done: make(chan error, 1)}
	if err := d.writer.submit(ctx, w); err != nil {
		return err
	}
	select {
	case err = <-w.done:
	case <-ctx.Done():
		// The next update of the key has to see what becomes of this one.
		abandoned = true
		go func() {
			<-w.done
			generation.Add(1)
			<-lock
		}()
		return ctx.Err()
	}
	now := generation.Add(1)
	if err == nil && next.value != nil {
		d.remember(key, next, now)
	} else {
		d.hot.Del(key)
	}
	return err
}

// page is how many records are read at once by what reads many.
const page = 256

func (d *disk) each(ctx context.Context, prefix string, visit func(string, []byte) bool) error {
	for from := prefix; ; {
		if !d.calls.TryRLock() {
			return ErrClosed
		}
		rows, err := read(ctx, d, func(r *reader) ([]row, error) { return r.list(prefix, from) })
		d.calls.RUnlock()
		if err != nil {
			return err
		}
		for _, r := range rows {
			if value := r.at(d.now()); value != nil && !visit(r.key, value) {
				return nil
			}
		}
		if from = after(rows); from == "" {
			return nil
		}
	}
}

// ready makes a write, as only that tells.
func (d *disk) ready(ctx context.Context) error {
	if !d.calls.TryRLock() {
		return ErrClosed
	}
	defer d.calls.RUnlock()
	w := &write{done: make(chan error, 1)}
	if err := d.writer.submit(ctx, w); err != nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read runs a query for as long as ctx lasts. A query that a hanging drive holds up keeps its
// reader, so no more than all readers wait for the drive.
func read[T any](ctx context.Context, d *disk, query func(*reader) (T, error)) (result T, err error) {
	var r *reader
	select {
	case r = <-d.readers:
	case <-ctx.Done():
		return result, ctx.Err()
	}
	if ctx.Done() == nil {
		result, err = query(r)
		d.readers <- r
		return result, err
	}
	type answer struct {
		result T
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := query(r)
		d.readers <- r
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		return a.result, a.err
	case <-ctx.Done():
		return result, ctx.Err()
	}
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
	defer close(d.swept)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	from, failing := "", false
	for {
		select {
		case <-d.quit:
			return
		case <-ticker.C:
		}
		for left := sweepRecords + 2*d.writer.written.Swap(0); left > 0; left -= page {
			next, err := d.sweep(from)
			if err != nil {
				if !failing {
					d.log.Error("expired records cannot be removed", "cause", err.Error())
				}
				failing = true
				break
			}
			failing = false
			if from = next; from == "" {
				break
			}
		}
	}
}

// sweep removes what has expired on the page at from, and returns where the next begins.
func (d *disk) sweep(from string) (next string, err error) {
	ctx := context.Background()
	rows, err := read(ctx, d, func(r *reader) ([]row, error) { return r.expiries(from) })
	if err != nil {
		return from, err
	}
	w := &write{before: d.now() - grace, done: make(chan error, 1)}
	for _, r := range rows {
		if r.expires <= w.before {
			w.expired = append(w.expired, r.key)
		}
	}
	if len(w.expired) > 0 {
		if err := d.writer.submit(ctx, w); err != nil {
			return from, err
		}
		if err := <-w.done; err != nil {
			return from, err
		}
	}
	return after(rows), nil
}

// close waits for the calls under way, and for what they left to be written.
func (d *disk) close() error {
	d.calls.Lock() // never unlocked: later calls find it closed
	close(d.quit)
	<-d.swept
	return d.closeFiles()
}

// closeFiles closes what open has opened, in the opposite order.
func (d *disk) closeFiles() error {
	if d.hot != nil {
		d.hot.Close()
	}
	var errs []error
	if d.writer != nil {
		d.writer.stop()
	}
	for range d.opened {
		errs = append(errs, (<-d.readers).close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.close())
	}
	return errors.Join(append(errs, d.dir.close())...)
}
