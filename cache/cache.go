// Package cache keeps bytes by key until they expire.
//
// A [Store] is a directory with recently used values in memory in front of it, or memory
// alone. A [Table] is a part of it with keys of its own. [Table.Update] changes one value by
// one step, and returns when the change is durable. So what was acknowledged survives kill -9 and,
// with Options.Sync, a power cut. [Batch] lets several changes become durable together.
package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// ErrUnavailable is the kind of every error of this package: there is no answer. After a
// failed Update either the old or the new value is kept.
var ErrUnavailable = errors.New("the store is unavailable")

// The kinds of ErrUnavailable that callers can tell apart.
var (
	// ErrFull means that the disk, or the memory of a store in memory alone, is full. Values can
	// still be read and removed, and writes succeed again once there is room.
	ErrFull = fmt.Errorf("%w: no room is left", ErrUnavailable)
	// ErrInUse means that another process has the directory open.
	ErrInUse = fmt.Errorf("%w: another process uses this data directory", ErrUnavailable)
	// ErrCorrupt means that a file does not hold what was written to it.
	ErrCorrupt = fmt.Errorf("%w: the data is corrupt", ErrUnavailable)
	// ErrFormat means that the records of the directory are of another format than Options.Format.
	ErrFormat = fmt.Errorf("%w: the records are of another format", ErrUnavailable)
	// ErrReplaced means that the directory was removed, moved or replaced while it is open. Calls
	// succeed again once the path names what is open.
	ErrReplaced = fmt.Errorf("%w: the data directory was removed, moved or replaced", ErrUnavailable)
	// ErrClosed means that the store was closed before the call.
	ErrClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)
)

// unavailable wraps the cause of a call that failed while it was doing something.
func unavailable(doing string, cause error) error {
	if errors.Is(cause, ErrUnavailable) {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, cause)
}

// Options say where and how carefully to keep values.
type Options struct {
	// Dir is made if it does not exist. Without it values are kept in memory alone and
	// end with the process.
	Dir string
	// Sync makes each Update wait until the drive has it, so that it survives a power cut.
	Sync bool
	// Bytes is the memory for recently used values; in memory alone, the most that is
	// kept. The default is 64 MiB.
	Bytes int64
	// Format is the version of what the caller keeps in its values and keys. A directory that was
	// made with another one is not opened.
	Format int
	// Now is the clock that expiry is measured by, in milliseconds since 1970. The default is
	// the machine's.
	Now func() int64
	// Log receives what an operator should know. The default is silence.
	Log *slog.Logger
}

// Store is one data directory, or memory alone.
type Store struct {
	records records
	now     func() int64
	closed  atomic.Bool
}

// Step makes the next value of a key from the old one; now is the store's clock. A nil old is a
// key without a value, a nil next removes it. The value is forgotten at expires; a next that equals
// old changes nothing, its expiry included. A step must not modify old, keep next, or call the store.
// It may run twice for one Update, in a store in memory that finds no room; the last run counts.
type Step = func(old []byte, now int64) (next []byte, expires int64)

// records are the values of all tables. Keys begin with the table's name and a slash.
type records interface {
	get(ctx context.Context, key string) ([]byte, error)
	update(ctx context.Context, key string, step Step) error
	// each visits the keys that begin with prefix from one on, in order.
	each(ctx context.Context, prefix, from string, visit func(key string, value []byte) bool) error
	ready(ctx context.Context) error
	close() error
}

// Open opens the directory, or makes a store in memory.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	if o.Dir == "" {
		return &Store{records: newMemory(o), now: o.Now}, nil
	}
	d, err := openDisk(o)
	if err != nil {
		return nil, unavailable("opening the data directory", err)
	}
	return &Store{records: d, now: o.Now}, nil
}

func (o Options) withDefaults() Options {
	if o.Bytes <= 0 {
		o.Bytes = 64 << 20
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Ready returns an error if values cannot be read and written now.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.records.ready(ctx); err != nil {
		return unavailable("writing", err)
	}
	return nil
}

// Close waits for calls in progress and closes the store. Later calls return ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.records.close(); err != nil {
		return unavailable("closing the store", err)
	}
	return nil
}

// Table is a part of a store with keys of its own.
type Table struct {
	records records
	now     func() int64
	name    string // in errors
	prefix  string
}

// Table returns the table of this name, which must not contain a slash. Tables of one name
// are one table.
func (s *Store) Table(name string) *Table {
	return (&Table{records: s.records, now: s.now, name: name}).Part(name)
}

// Part returns a table in the table. The rules for its name are those of Store.Table.
func (t *Table) Part(name string) *Table {
	if strings.Contains(name, "/") {
		panic("cache: the name of a table contains a slash")
	}
	return &Table{t.records, t.now, t.name, t.prefix + name + "/"}
}

// Now returns the time by the store's clock.
func (t *Table) Now() int64 { return t.now() }

// Get returns the value of the key, or nil if it has none or it has expired. The caller must
// not modify it. A value that an Update is writing may be returned before it is durable.
func (t *Table) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := t.records.get(ctx, t.prefix+key)
	if err != nil {
		return nil, unavailable("reading from "+t.name, err)
	}
	return value, nil
}

// Update lets step replace the value of the key, with no other step on the key in between, and
// returns when the change and what step read are durable. If ctx ends while the change is being written, Update returns and the
// change may or may not be kept. Under the context of a [Batch] it does not wait.
func (t *Table) Update(ctx context.Context, key string, step Step) error {
	err := ctx.Err()
	if err == nil {
		err = t.records.update(ctx, t.prefix+key, step)
	}
	if err != nil {
		return unavailable("writing to "+t.name, err)
	}
	return nil
}

// Each visits every value that has not expired, in the order of their keys, until visit returns
// false. It holds up no other call; whether it visits a value that changes meanwhile is not defined.
// The value must not be modified.
func (t *Table) Each(ctx context.Context, visit func(key string, value []byte) bool) error {
	return t.EachFrom(ctx, "", visit)
}

// EachFrom is Each from a key on.
func (t *Table) EachFrom(ctx context.Context, from string, visit func(key string, value []byte) bool) error {
	err := t.records.each(ctx, t.prefix, t.prefix+from, func(key string, value []byte) bool {
		return visit(key[len(t.prefix):], value)
	})
	if err != nil {
		return unavailable("reading all of "+t.name, err)
	}
	return nil
}

// record is a value and when it expires. A nil value is none.
type record struct {
	value   []byte
	expires int64
	written int64 // the newest time at which a step wrote it since it had no value
}

// at returns the value if it has not expired at now.
func (r record) at(now int64) []byte {
	if now >= r.expires {
		return nil
	}
	return r.value
}

// apply takes one step from r at now and reports whether there is something to write.
func (r record) apply(now int64, step Step) (next record, changed bool) {
	old := r.at(now)
	next.value, next.expires = step(old, now)
	if next.at(now) == nil {
		return record{}, r.value != nil // also if it has expired: the clock may step back
	}
	next.written = now
	if old != nil {
		next.written = max(now, r.written)
	}
	return next, old == nil || !bytes.Equal(next.value, old)
}
