package standby

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// operation is one that Redis lacks. A record has one value at most, with the zero id.
type operation struct {
	order int64 // its place among all; 0 before it is in the journal
	kind  kind
	by    unique.Handle[string] // the text of the algorithm that admitted it
	a     throttle.Admission
	until int64  // when it expires
	value []byte // of a value: what Redis may already have of it
}

func (o operation) compare(order int64) int { return cmp.Compare(o.order, order) }

// recordKey names a record: the part that it belongs to, and its key there.
type recordKey struct{ part, key string }

// rowOrder is how many bytes of a row on disk are the operation's order.
const rowOrder = 16

// row returns the operation's key on disk.
func (k recordKey) row(o operation) string {
	return fmt.Sprintf("%0*x%s\x00%s", rowOrder, o.order, k.part, k.key)
}

// journal holds the operations to sync in their order, all in memory and each on disk. Those of
// a record are changed with its lock held.
type journal struct {
	table *cache.Table
	most  int

	last   atomic.Int64 // order
	number atomic.Int64 // of operations

	mu      sync.RWMutex
	records map[recordKey][]operation
}

func newJournal(table *cache.Table, most int) *journal {
	return &journal{table: table, most: most, records: map[recordKey][]operation{}}
}

// maxOperations bounds the journal to about 128 MiB of memory: a record with one operation takes
// some 250 bytes.
const maxOperations = 500_000

var (
	errFull    = errors.New("the journal is full")
	errDamaged = errors.New("the journal is damaged")
)

// load reads all from disk.
func (j *journal) load(ctx context.Context) (damaged error) {
	err := j.table.Each(ctx, func(row string, stored []byte) bool {
		name := row[min(rowOrder, len(row)):]
		part, key, named := strings.Cut(name, "\x00")
		o, err := parseOperation(stored)
		if err == nil && named {
			o.order, err = strconv.ParseInt(strings.TrimSuffix(row, name), 16, 64)
		}
		if err != nil || !named {
			damaged = errors.Join(errDamaged, err)
			return false
		}
		j.keep(recordKey{part, key}, o)
		j.last.Store(o.order)
		return true
	})
	return errors.Join(err, damaged)
}

// header is the beginning of an operation on disk. Behind it are the text of the algorithm and the value.
type header struct {
	Kind      kind
	ID        throttle.ID
	At, Until int64
	By        uint16 // bytes
}

func (o operation) encode() []byte {
	by := ""
	if o.kind != value {
		by = o.by.Value()
	}
	stored, _ := binary.Append(nil, binary.BigEndian, header{o.kind, o.a.ID, o.a.At, o.until, uint16(len(by))}) // never fails
	return append(append(stored, by...), o.value...)
}

func parseOperation(stored []byte) (o operation, err error) {
	var h header
	n, err := binary.Decode(stored, binary.BigEndian, &h)
	if err != nil || len(stored) < n+int(h.By) {
		return o, errDamaged
	}
	by, rest := string(stored[n:n+int(h.By)]), stored[n+int(h.By):]
	o = operation{kind: h.Kind, a: throttle.Admission{ID: h.ID, At: h.At}, until: h.Until, by: unique.Make(by)}
	if o.kind == value {
		o.value = bytes.Clone(rest)
	} else {
		_, err = throttle.Parse(by)
	}
	return o, err
}

// put writes an operation to disk and then to memory: a new one behind all others, one of the journal in its place.
func (j *journal) put(ctx context.Context, k recordKey, o operation) error {
	if o.order == 0 {
		if err := j.room(); err != nil {
			return err
		}
		o.order = j.last.Add(1)
	}
	stored := o.encode()
	err := j.table.Update(ctx, k.row(o), func([]byte, int64) ([]byte, int64) { return stored, o.until })
	if err == nil {
		j.keep(k, o)
	}
	return err
}

// keep takes an operation into memory.
func (j *journal) keep(k recordKey, o operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.records[k]
	if i, again := slices.BinarySearchFunc(all, o.order, operation.compare); again {
		all[i] = o
		return
	}
	j.records[k] = append(all, o)
	j.number.Add(1)
}

// room returns errFull if there is no room for one more.
func (j *journal) room() error {
	if j.size() >= j.most {
		return errFull
	}
	return nil
}

// forget removes operations, in their order, also if ctx has ended. Under the context of a [cache.Batch] it does not wait
// for the disk. What the disk still has at the next start is sent again.
func (j *journal) forget(ctx context.Context, k recordKey, some ...operation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	for _, o := range some {
		errs = append(errs, j.table.Update(ctx, k.row(o), func([]byte, int64) ([]byte, int64) { return nil, 0 }))
	}
	j.drop(k, some)
	if err := errors.Join(errs...); err != nil {
		return throttle.Unavailable("emptying the journal", err)
	}
	return nil
}

// drop removes operations, in their order, from memory alone: those that have expired are not read from disk again.
func (j *journal) drop(k recordKey, some []operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := j.records[k]
	before := len(left)
	for len(left) > 0 && len(some) > 0 && left[0].order == some[0].order { // else a long record would be moved each time
		left, some = left[1:], some[1:]
	}
	if len(some) > 0 {
		left = slices.DeleteFunc(left, func(o operation) bool {
			_, gone := slices.BinarySearchFunc(some, o.order, operation.compare)
			return gone
		})
	}
	j.number.Add(int64(len(left) - before))
	if j.records[k] = left; len(left) == 0 {
		delete(j.records, k)
	}
}

// find returns the newest operation of a record that is one of those.
func (j *journal) find(k recordKey, those func(operation) bool) (o operation, found bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, o := range slices.Backward(j.records[k]) {
		if those(o) {
			return o, true
		}
	}
	return o, false
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

func (j *journal) size() int { return int(j.number.Load()) }

// waiting is a record, and the order of its oldest operation.
type waiting struct {
	recordKey
	since int64
}

// all returns the records. It lets others change the journal now and then, as a range over a map allows for that: at half a
// million records a decision would wait a quarter of a second.
func (j *journal) all() (all []waiting) {
	const atOnce = 1024
	all = make([]waiting, 0, j.size())
	j.mu.RLock()
	defer j.mu.RUnlock()
	for k, kept := range j.records {
		if all = append(all, waiting{k, kept[0].order}); len(all)%atOnce == 0 {
			j.mu.RUnlock()
			j.mu.RLock()
		}
	}
	return all
}
