package standby

import (
	"bytes"
	"cmp"
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
	order int64  // of an admission or a release: later ones of a record have more
	gone  bool   // from the journal
}

// operations are those of a record.
type operations struct {
	byID    map[throttle.ID]*operation
	inOrder []*operation // some are gone
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
	records map[recordKey]*operations
	number  int   // of operations
	last    int64 // order
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
		j.insert(recordKey{part, rest[8:]}, o)
		return true
	})
	for _, all := range j.records {
		slices.SortFunc(all.inOrder, func(a, b *operation) int { return cmp.Compare(a.order, b.order) })
	}
	return errors.Join(err, damaged)
}

// encode returns the operation as it is on disk: its kind, its times, the algorithm behind its length, and the order or
// the value.
func (o operation) encode() []byte {
	by, rest := "", o.value
	if o.kind != value {
		by, rest = o.by.Value(), binary.BigEndian.AppendUint64(nil, uint64(o.order))
	}
	stored := binary.BigEndian.AppendUint64([]byte{byte(o.kind)}, uint64(o.a.At))
	stored = binary.BigEndian.AppendUint64(stored, uint64(o.until))
	stored = append(binary.BigEndian.AppendUint16(stored, uint16(len(by))), by...)
	return append(stored, rest...)
}

func parseOperation(stored []byte) (o operation, err error) {
	const header = 19
	if len(stored) < header || len(stored) < header+int(binary.BigEndian.Uint16(stored[17:])) {
		return o, errDamaged
	}
	o.kind, o.a.At = kind(stored[0]), int64(binary.BigEndian.Uint64(stored[1:]))
	o.until = int64(binary.BigEndian.Uint64(stored[9:]))
	by, rest := stored[header:header+binary.BigEndian.Uint16(stored[17:])], stored[header+binary.BigEndian.Uint16(stored[17:]):]
	o.by = unique.Make(string(by))
	if o.kind == value {
		o.value = append([]byte(nil), rest...)
		return o, nil
	}
	if len(rest) == 8 { // else an earlier program of this format wrote it
		o.order = int64(binary.BigEndian.Uint64(rest))
	}
	_, err = throttle.Parse(string(by))
	return o, err
}

// put writes an operation to disk and then to memory, behind those of its record. One of the same id is replaced, in
// its place.
func (j *journal) put(ctx context.Context, k recordKey, o operation) error {
	if before, again := j.at(k, o.a.ID); again {
		o.order = before.order
	} else {
		if err := j.room(); err != nil {
			return err
		}
		o.order = j.nextOrder()
	}
	stored := o.encode()
	err := j.table.Update(ctx, k.row(o.a.ID), func([]byte, int64) ([]byte, int64) { return stored, o.until })
	if err == nil {
		j.insert(k, o)
	}
	return err
}

func (j *journal) insert(k recordKey, o operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.records[k]
	if all == nil {
		all = &operations{byID: map[throttle.ID]*operation{}}
		j.records[k] = all
	}
	j.last = max(j.last, o.order)
	if before := all.byID[o.a.ID]; before != nil {
		*before = o
		return
	}
	all.byID[o.a.ID] = &o
	all.inOrder = append(all.inOrder, &o)
	j.number++
}

func (j *journal) nextOrder() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	return j.last
}

// room returns errFull if there is no room for one more.
func (j *journal) room() error {
	if j.size() >= j.most {
		return errFull
	}
	return nil
}

// forget removes operations, also if ctx has ended. Under the context of a [cache.Batch] it does not wait for the disk.
// What the disk still has at the next start is sent again.
func (j *journal) forget(ctx context.Context, k recordKey, all ...operation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	for _, o := range all {
		errs = append(errs, j.table.Update(ctx, k.row(o.a.ID), func([]byte, int64) ([]byte, int64) { return nil, 0 }))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if kept := j.records[k]; kept != nil {
		j.number -= kept.remove(all)
		if len(kept.byID) == 0 {
			delete(j.records, k)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return throttle.Unavailable("emptying the journal", err)
	}
	return nil
}

// remove removes operations, and returns how many there were. Those that are gone stay inOrder until they are the first,
// or the larger part.
func (all *operations) remove(some []operation) (removed int) {
	for _, o := range some {
		if kept := all.byID[o.a.ID]; kept != nil {
			kept.gone = true
			delete(all.byID, o.a.ID)
			removed++
		}
	}
	for len(all.inOrder) > 0 && all.inOrder[0].gone {
		all.inOrder = all.inOrder[1:]
	}
	if len(all.inOrder) > 2*len(all.byID)+16 {
		all.inOrder = slices.DeleteFunc(all.inOrder, func(o *operation) bool { return o.gone })
	}
	return removed
}

func (j *journal) at(k recordKey, id throttle.ID) (o operation, found bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if all := j.records[k]; all != nil && all.byID[id] != nil {
		return *all.byID[id], true
	}
	return o, false
}

func (j *journal) has(k recordKey) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.records[k] != nil
}

// some returns at most that many operations of a record that expire by a moment, in their order.
func (j *journal) some(k recordKey, most int, by int64) (some []operation) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	all := j.records[k]
	if all == nil {
		return nil
	}
	for _, o := range all.inOrder {
		if len(some) == most {
			break
		}
		if !o.gone && o.until <= by {
			some = append(some, *o)
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

// sortByRow sorts records by their first rows on disk: those that are removed together are neighbours there, or each
// would be another page to write.
func (j *journal) sortByRow(keys []recordKey) {
	type first struct {
		recordKey
		id throttle.ID
	}
	all := make([]first, len(keys))
	j.mu.RLock()
	for i, k := range keys {
		all[i].recordKey = k
		if kept := j.records[k]; kept != nil {
			all[i].id = kept.inOrder[0].a.ID
		}
	}
	j.mu.RUnlock()
	slices.SortFunc(all, func(a, b first) int {
		return cmp.Or(strings.Compare(a.part, b.part), bytes.Compare(a.id[:], b.id[:]), strings.Compare(a.key, b.key))
	})
	for i := range all {
		keys[i] = all[i].recordKey
	}
}
