package standby

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/throttle"
)

// kind says what an operation does.
type kind byte

const (
	record  kind = iota // an admission
	release             // of an admission
	value               // a keyed value was changed
)

// operation is one that Redis lacks. A record has at most one of each id; a value has
// the zero id.
type operation struct {
	kind  kind
	a     throttle.Admission
	until int64  // when it expires
	value []byte // of a value: what Redis may already have of it
}

// recordKey names a record: the part that it belongs to, and its key there.
type recordKey struct{ part, key string }

// row is the operation's key on disk.
func (k recordKey) row(id throttle.ID) string { return k.part + "\x00" + string(id[:]) + k.key }

// entry is what the journal has of one record.
type entry struct {
	recordKey
	master     *prober.Master // which was away
	operations map[throttle.ID]operation
}

// journal holds the operations to sync, all in memory and each on disk. Those of
// a record are changed with its lock held.
type journal struct {
	table *cache.Table
	most  int

	mu      sync.RWMutex
	entries map[recordKey]*entry
	number  int // of operations
}

// maxOperations bounds the journal to about 256 MiB of memory: a record with one operation takes
// some 500 bytes.
const maxOperations = 500_000

var errFull = errors.New("the journal is full")

// load reads all from disk.
func (j *journal) load(ctx context.Context, masterOf func(key string) *prober.Master) error {
	return j.table.Each(ctx, func(row string, stored []byte) bool {
		part, rest, _ := strings.Cut(row, "\x00")
		if len(rest) < len(throttle.ID{}) || len(stored) < 17 {
			return true
		}
		id, key := throttle.ID([]byte(rest[:8])), rest[8:]
		o := operation{kind: kind(stored[0]), a: throttle.Admission{ID: id, At: int64(binary.BigEndian.Uint64(stored[1:]))}}
		o.until, o.value = int64(binary.BigEndian.Uint64(stored[9:])), append([]byte(nil), stored[17:]...)
		j.keep(masterOf(key), recordKey{part, key}, o)
		return true
	})
}

// put writes an operation to disk and then to memory, and replaces one of the same id.
func (j *journal) put(ctx context.Context, m *prober.Master, k recordKey, o operation) error {
	if _, again := j.at(k, o.a.ID); !again {
		if err := j.room(); err != nil {
			return err
		}
	}
	stored := binary.BigEndian.AppendUint64([]byte{byte(o.kind)}, uint64(o.a.At))
	stored = append(binary.BigEndian.AppendUint64(stored, uint64(o.until)), o.value...)
	err := j.table.Update(ctx, k.row(o.a.ID), func([]byte) ([]byte, int64) { return stored, o.until })
	if err == nil {
		j.keep(m, k, o)
	}
	return err
}

func (j *journal) keep(m *prober.Master, k recordKey, o operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[k]
	if e == nil {
		e = &entry{recordKey: k, master: m, operations: map[throttle.ID]operation{}}
		j.entries[k] = e
	}
	j.number -= len(e.operations)
	e.operations[o.a.ID] = o
	j.number += len(e.operations)
}

// room returns errFull if there is no room for one more.
func (j *journal) room() error {
	if j.size() >= j.most {
		return errFull
	}
	return nil
}

// forget removes operations, also if ctx has ended. After an error the disk may still have
// them, and then they are sent again after the next start.
func (j *journal) forget(ctx context.Context, k recordKey, all ...operation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	errs := make([]error, len(all))
	var removing sync.WaitGroup
	for i, o := range all {
		removing.Go(func() { // in parallel, so that one write to disk has them all
			errs[i] = j.table.Update(ctx, k.row(o.a.ID), func([]byte) ([]byte, int64) { return nil, 0 })
		})
	}
	removing.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.entries[k]; e != nil {
		j.number -= len(e.operations)
		for _, o := range all {
			delete(e.operations, o.a.ID)
		}
		j.number += len(e.operations)
		if len(e.operations) == 0 {
			delete(j.entries, k)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return throttle.Unavailable("emptying the journal", err)
	}
	return nil
}

func (j *journal) at(k recordKey, id throttle.ID) (o operation, found bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if e := j.entries[k]; e != nil {
		o, found = e.operations[id]
	}
	return o, found
}

func (j *journal) has(k recordKey) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.entries[k] != nil
}

// some returns at most that many operations of a record that expire by a moment.
func (j *journal) some(k recordKey, most int, by int64) (some []operation) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if e := j.entries[k]; e != nil {
		for _, o := range e.operations {
			if len(some) == most {
				break
			}
			if o.until <= by {
				some = append(some, o)
			}
		}
	}
	return some
}

func (j *journal) size() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.number
}

// all returns the entries. Only their names and masters may be used.
func (j *journal) all() []*entry {
	j.mu.RLock()
	defer j.mu.RUnlock()
	all := make([]*entry, 0, len(j.entries))
	for _, e := range j.entries {
		all = append(all, e)
	}
	return all
}
