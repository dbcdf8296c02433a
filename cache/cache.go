package cache

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

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
	// Now is the clock that expiry goes by, in milliseconds since 1970. The default is the
	// machine's.
	Now func() int64
	// Log is told what an operator should know. The default is silence.
	Log *slog.Logger
}

// Store is one data directory, or memory alone.
type Store struct {
	home   home
	closed atomic.Bool
}

// Step makes the next value of a key from the old one. A nil old is a key without a value, a
// nil next removes it. The value is forgotten at expires. A step must not modify old, keep
// next, or call the store.
type Step = func(old []byte) (next []byte, expires int64)

// home keeps the values of all tables. Its keys begin with the table's name and a slash.
type home interface {
	get(ctx context.Context, key string) ([]byte, error)
	update(ctx context.Context, key string, step Step) error
	each(ctx context.Context, prefix string, visit func(key string, value []byte) bool) error
	ready(ctx context.Context) error
	close() error
}

// Open opens the directory, or makes a store in memory.
func Open(o Options) (*Store, error) {
	if o.Bytes <= 0 {
		o.Bytes = 64 << 20
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dir == "" {
		return &Store{home: newMemory(o)}, nil
	}
	d, err := openDisk(o)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", unavailable(err))
	}
	return &Store{home: d}, nil
}

// Ready returns an error if values cannot be read and written now.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.home.ready(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

// Close waits for the calls under way and ends the store. Later calls return ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.home.close(); err != nil {
		return fmt.Errorf("closing the store: %w", unavailable(err))
	}
	return nil
}

// Table is a part of a store with keys of its own.
type Table struct {
	home   home
	name   string
	prefix string
}

// Table returns the table of this name, which must not contain a slash. Tables of one name
// are one table.
func (s *Store) Table(name string) *Table {
	if strings.Contains(name, "/") {
		panic("cache: the name of a table contains a slash")
	}
	return &Table{home: s.home, name: name, prefix: name + "/"}
}

// Get returns the value of the key, or nil if it has none or it has expired. The caller must
// not modify it.
func (t *Table) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := t.home.get(ctx, t.prefix+key)
	if err != nil {
		return nil, fmt.Errorf("reading from %s: %w", t.name, unavailable(err))
	}
	return value, nil
}

// Update lets step replace the value of the key, with no other Update of the key in between,
// and returns when the change is durable. A next that equals old and expires when old does
// writes nothing. If ctx ends while the change is being written, Update returns and the change
// may or may not be kept.
func (t *Table) Update(ctx context.Context, key string, step Step) error {
	err := ctx.Err()
	if err == nil {
		err = t.home.update(ctx, t.prefix+key, step)
	}
	if err != nil {
		return fmt.Errorf("writing to %s: %w", t.name, unavailable(err))
	}
	return nil
}

// Each visits every value that has not expired, in any order, until visit returns false. It
// holds up no other call; whether it visits a value that changes meanwhile is not defined. The
// value must not be modified.
func (t *Table) Each(ctx context.Context, visit func(key string, value []byte) bool) error {
	err := t.home.each(ctx, t.prefix, func(key string, value []byte) bool {
		return visit(key[len(t.prefix):], value)
	})
	if err != nil {
		return fmt.Errorf("reading all of %s: %w", t.name, unavailable(err))
	}
	return nil
}

// record is a value and when it expires. A nil value is none.
type record struct {
	value   []byte
	expires int64
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
	next.value, next.expires = step(old)
	if next.at(now) == nil {
		return record{}, old != nil
	}
	return next, old == nil || next.expires != r.expires || !bytes.Equal(next.value, old)
}
