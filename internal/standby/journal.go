package standby

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/mailgate/mailgate/cache"
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
	by    unique.Handle[string] // the text of the algorithm that admitted it
	a     throttle.Admission
	until int64  // when it expires
	value []byte // of a value: what Redis may already have of it
}

// recordKey names a record: the part that it belongs to, and its key there.
type recordKey struct{ part, key string }

// row returns the operation's key on disk.
func (k recordKey) row(id throttle.ID) string { return k.part + "\x00" + string(id[:]) + k.key }

// journal holds the operations to sync, all in memory and each on disk. Those of
// a record are changed with its lock held.
type journal struct {
	table *cache.Table
	most  int

	mu      sync.RWMutex
	records map[recordKey]map[throttle.ID]operation
	number  int // of operations
}

// maxOperations bounds the journal to about 256 MiB of memory: a record with one operation takes
// some 500 bytes.
const maxOperations = 500_000

var (
	errFull    = errors.New("the journal is full")
	errDamaged = errors.New("the journal is damaged")
)

// load reads all from disk.
func (j *journal) load(ctx context.Context) (damaged error) {
	err := j.table.Each(ctx, func(row string, stored []byte) bool {
		part, rest, _ := strings.Cut(row, "\x00")
		o, err := parseOperation(stored)
		if damaged = err; err != nil || len(rest) < len(o.a.ID) {
			damaged = errDamaged
			return false
		}
		o.a.ID = throttle.ID([]byte(rest[:8]))
		j.keep(recordKey{part, rest[8:]}, o)
		return true
	})
	return errors.Join(err, damaged)
}

// encode returns the operation as it is on disk: its kind, its times, the algorithm behind its length, and the value.
func (o operation) encode() []byte {
	by := ""
	if o.kind != value {
		by = o.by.Value()
	}
	stored := binary.BigEndian.AppendUint64([]byte{byte(o.kind)}, uint64(o.a.At))
	stored = binary.BigEndian.AppendUint64(stored, uint64(o.until))
	stored = append(binary.BigEndian.AppendUint16(stored, uint16(len(by))), by...)
	return append(stored, o.value...)
}

func parseOperation(stored []byte) (o operation, err error) {
	const header = 19
	if len(stored) < header || len(stored) < header+int(binary.BigEndian.Uint16(stored[17:])) {
		return o, errDamaged
	}
	o.kind, o.a.At = kind(stored[0]), int64(binary.BigEndian.Uint64(stored[1:]))
	o.until = int64(binary.BigEndian.Uint64(stored[9:]))
	by, rest := stored[header:header+binary.BigEndian.Uint16(stored[17:])], stored[header+binary.BigEndian.Uint16(stored[17:]):]
	o.by, o.value = unique.Make(string(by)), append([]byte(nil), rest...)
	if o.kind != value {
		_, err = throttle.Parse(string(by))
	}
	return o, err
}

// put writes an operation to disk and then to memory, and replaces one of the same id.
func (j *journal) put(ctx context.Context, k recordKey, o operation) error {
	if _, again := j.at(k, o.a.ID); !again {
		if err := j.room(); err != nil {
			return err
		}
	}
	stored := o.encode()
	err := j.table.Update(ctx, k.row(o.a.ID), func([]byte, int64) ([]byte, int64) { return stored, o.until })
	if err == nil {
		j.keep(k, o)
	}
	return err
}

func (j *journal) keep(k recordKey, o operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.records[k] == nil {
		j.records[k] = map[throttle.ID]operation{}
	}
	if _, again := j.records[k][o.a.ID]; !again {
		j.number++
	}
	j.records[k][o.a.ID] = o
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
	ctx, durable := cache.Batch(ctx)
	var errs []error
	for _, o := range all {
		errs = append(errs, j.table.Update(ctx, k.row(o.a.ID), func([]byte, int64) ([]byte, int64) { return nil, 0 }))
	}
	errs = append(errs, durable(ctx))
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range all {
		if _, found := j.records[k][o.a.ID]; found {
			delete(j.records[k], o.a.ID)
			j.number--
		}
	}
	if len(j.records[k]) == 0 {
		delete(j.records, k)
	}
	if err := errors.Join(errs...); err != nil {
		return throttle.Unavailable("emptying the journal", err)
	}
	return nil
}

func (j *journal) at(k recordKey, id throttle.ID) (o operation, found bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	o, found = j.records[k][id]
	return o, found
}

func (j *journal) has(k recordKey) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.records[k] != nil
}

// some returns at most that many operations of a record that expire by a moment.
func (j *journal) some(k recordKey, most int, by int64) (some []operation) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, o := range j.records[k] {
		if len(some) == most {
			break
		}
		if o.until <= by {
			some = append(some, o)
		}
	}
	return some
}

func (j *journal) size() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.number
}

// keys returns the names of the records.
func (j *journal) keys() []recordKey {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return slices.Collect(maps.Keys(j.records))
}
