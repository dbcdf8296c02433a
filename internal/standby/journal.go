package standby

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// kind is what Redis is to be told.
type kind byte

const (
	record  kind = iota // an admission
	release             // that one was given back
	value               // that a keyed value was changed
)

// operation is one that Redis is to be told of. A key has at most one of each id; a value has the
// zero id.
type operation struct {
	kind  kind
	a     throttle.Admission
	until int64  // from then on it does not matter any more
	value []byte // what Redis may have been told of the value
}

// entry is what the journal has of one key of a part.
type entry struct {
	part, key  string
	master     *master // which was away
	operations map[throttle.ID]operation
}

// journal is the operations that Redis is to be told of: all in memory, and each on disk under
// its part, id and key. A key's operations are changed with the key's lock held.
type journal struct {
	table *cache.Table
	most  int

	mu      sync.RWMutex
	entries map[string]*entry // by holder
	number  int
}

// mostOperations bounds the journal to about 256 MiB of memory: a key with one operation takes some
// 500 bytes.
const mostOperations = 500_000

// errFull is why an operation is not noted.
var errFull = errors.New("this node has decided as much alone as its journal holds")

func rowOf(holder string, id throttle.ID) string {
	name, key, _ := strings.Cut(holder, "\x00")
	return name + "\x00" + string(id[:]) + key
}

// load reads all from disk.
func (j *journal) load(ctx context.Context, masterOf func(key string) *master) error {
	return j.table.Each(ctx, func(row string, stored []byte) bool {
		name, rest, _ := strings.Cut(row, "\x00")
		if len(rest) < len(throttle.ID{}) || len(stored) < 17 {
			return true
		}
		id, key := throttle.ID([]byte(rest[:8])), rest[8:]
		o := operation{kind: kind(stored[0]), a: throttle.Admission{ID: id, At: int64(binary.BigEndian.Uint64(stored[1:]))}}
		o.until, o.value = int64(binary.BigEndian.Uint64(stored[9:])), append([]byte(nil), stored[17:]...)
		j.keep(masterOf(key), name+"\x00"+key, o)
		return true
	})
}

// put notes an operation on disk and then in memory, in place of one of the same id.
func (j *journal) put(ctx context.Context, m *master, holder string, o operation) error {
	if _, again := j.at(holder, o.a.ID); !again {
		if err := j.room(o.kind); err != nil {
			return err
		}
	}
	stored := binary.BigEndian.AppendUint64([]byte{byte(o.kind)}, uint64(o.a.At))
	stored = append(binary.BigEndian.AppendUint64(stored, uint64(o.until)), o.value...)
	err := j.table.Update(ctx, rowOf(holder, o.a.ID), func([]byte) ([]byte, int64) { return stored, o.until })
	if err != nil {
		return err
	}
	j.keep(m, holder, o)
	return nil
}

func (j *journal) keep(m *master, holder string, o operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[holder]
	if e == nil {
		name, key, _ := strings.Cut(holder, "\x00")
		e = &entry{part: name, key: key, master: m, operations: map[throttle.ID]operation{}}
		j.entries[holder] = e
	}
	if _, again := e.operations[o.a.ID]; !again {
		j.number++
	}
	e.operations[o.a.ID] = o
}

// room returns errFull if there is no room for one more. A release has more room than an admission.
func (j *journal) room(k kind) error {
	most := j.most
	if k == release {
		most += most / 8
	}
	if j.size() >= most {
		return errFull
	}
	return nil
}

// forget removes operations, also where the caller has gone. After an error the disk may still have
// them, and then they are told again after the next start.
func (j *journal) forget(ctx context.Context, holder string, all ...operation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	errs := make([]error, len(all))
	var removing sync.WaitGroup
	for i, o := range all {
		removing.Go(func() {
			errs[i] = j.table.Update(ctx, rowOf(holder, o.a.ID), func([]byte) ([]byte, int64) { return nil, 0 })
		})
	}
	removing.Wait()
	err := errors.Join(errs...)
	if err != nil {
		err = throttle.Unavailable("emptying the journal", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[holder]
	for _, o := range all {
		if e == nil {
			break
		}
		if _, found := e.operations[o.a.ID]; found {
			delete(e.operations, o.a.ID)
			j.number--
		}
	}
	if e != nil && len(e.operations) == 0 {
		delete(j.entries, holder)
	}
	return err
}

func (j *journal) at(holder string, id throttle.ID) (o operation, found bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if e := j.entries[holder]; e != nil {
		o, found = e.operations[id]
	}
	return o, found
}

func (j *journal) has(holder string) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.entries[holder] != nil
}

// some returns up to so many operations of a key.
func (j *journal) some(holder string, most int) (some []operation) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if e := j.entries[holder]; e != nil {
		for _, o := range e.operations {
			if len(some) == most {
				break
			}
			some = append(some, o)
		}
	}
	return some
}

// expired returns the operations that do not matter any more, by holder.
func (j *journal) expired(now int64) map[string][]operation {
	j.mu.RLock()
	defer j.mu.RUnlock()
	old := map[string][]operation{}
	for holder, e := range j.entries {
		for _, o := range e.operations {
			if o.until <= now {
				old[holder] = append(old[holder], o)
			}
		}
	}
	return old
}

func (j *journal) size() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.number
}

// all returns the entries that are wanted. Of an entry only part, key and master may be used.
func (j *journal) all(wanted func(*entry) bool) (some []*entry) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, e := range j.entries {
		if wanted(e) {
			some = append(some, e)
		}
	}
	return some
}
