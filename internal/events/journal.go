package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/cache"
)

// journal has the events that wait, under numbers that count up. It is a store of its own: a backup of the
// records has no events, and a node beside Redis that keeps no records has them too.
type journal struct {
	store *cache.Store
	table *cache.Table
	most  int64
	size  int64  // of all lines
	last  uint64 // the newest number
}

const (
	// format is the version of the lines.
	format = 1
	// recentBytes is the memory for lines that are read soon after they were written.
	recentBytes = 1 << 20
	// kept is longer than lifetime, so that an event that is dropped for its age is counted.
	kept = lifetime + time.Hour
)

var (
	errFull = errors.New("the journal is full")
	errLine = errors.New("a line of the journal is damaged")
)

// openJournal returns the events that wait, the oldest first.
func openJournal(o Options) (_ *journal, waiting []event, err error) {
	store, err := cache.Open(cache.Options{Dir: o.Dir, Bytes: recentBytes, Format: format, Now: o.Now, Log: o.Log})
	if err != nil {
		return nil, nil, err
	}
	j := &journal{store: store, table: store.Table("events"), most: o.MaxBytes}
	var damaged error
	err = j.table.Each(context.Background(), func(key string, line []byte) bool {
		e, _, _, err := parseLine(line)
		if err == nil {
			j.last, err = strconv.ParseUint(key, 10, 64)
		}
		if err != nil {
			damaged = err
			return false
		}
		e.key = key
		j.size += e.size
		waiting = append(waiting, e)
		return true
	})
	if err = errors.Join(err, damaged); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return j, waiting, nil
}

// add adds an event of which a part of the journal, of 1, may be full. It is kept once the batch of ctx is.
func (j *journal) add(ctx context.Context, n note, part float64) (event, error) {
	e := event{mailbox: n.mailbox, noted: n.at, size: int64(len(n.line))}
	if float64(j.size+e.size) > part*float64(j.most) {
		return e, errFull
	}
	j.last++
	e.key = fmt.Sprintf("%020d", j.last)
	err := j.table.Update(ctx, e.key, func([]byte, int64) ([]byte, int64) { return n.line, n.at + kept.Milliseconds() })
	if err == nil {
		j.size += e.size
	}
	return e, err
}

// read returns what is posted of an event.
func (j *journal) read(e event) (id string, body []byte, err error) {
	line, err := j.table.Get(context.Background(), e.key)
	if err == nil {
		_, id, body, err = parseLine(line)
	}
	return id, body, err
}

// remove removes an event, within a second.
func (j *journal) remove(e event) error {
	j.size -= e.size
	later, _ := cache.Batch(context.Background())
	return j.table.Update(later, e.key, func([]byte, int64) ([]byte, int64) { return nil, 0 })
}
