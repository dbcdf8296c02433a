package cache

import (
	"bytes"
	"context"
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// walkStep is how many values are read in one step. Between steps nothing is held.
const walkStep = 256

// Each visits the values that have not expired at now, in the order of their keys, until
// visit returns false. It takes no lock and remembers nothing in memory: it reads what is
// on disk, step by step, so that writers go on. A key that is written or removed meanwhile
// is visited as it was or as it is, or not at all. Visit may use the Map.
func (m *Map[V]) Each(ctx context.Context, now int64, visit func(key string, value V) bool) error {
	type found struct {
		key   string
		value V
	}
	prefix := m.diskKey("")
	var step []found
	for from := prefix; from != nil; {
		if m.open.Load() == nil {
			return ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		step = step[:0]
		var err error
		from, err = m.disk.list(prefix, from, walkStep, func(key, value []byte) error {
			e, err := m.parse(value)
			if value, live := e.at(now); live && err == nil {
				step = append(step, found{string(key[len(prefix):]), value})
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, one := range step {
			if !visit(one.key, one.value) {
				return nil
			}
		}
	}
	return nil
}

// list hands up to so many values to read, from a key on among those with the prefix. It
// returns where to go on, nil at the end. Read must not keep what it is handed.
func (d *Disk) list(prefix, from []byte, most int, read func(key, value []byte) error) (next []byte, err error) {
	var parsed error
	err = d.view(func(txn *badger.Txn) error {
		walk := txn.NewIterator(badger.IteratorOptions{PrefetchValues: true, PrefetchSize: most, Prefix: prefix})
		defer walk.Close()
		for walk.Seek(from); walk.Valid() && parsed == nil; walk.Next() {
			item := walk.Item()
			if most--; most < 0 {
				next = bytes.Clone(item.Key())
				return nil
			}
			err := item.Value(func(value []byte) error {
				parsed = read(item.Key(), value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return next, errors.Join(parsed, err)
}
