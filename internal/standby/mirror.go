package standby

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/recovered"
)

// mirror copies what Redis admitted to the node's own records, and records whether they are
// complete. After a failed write they are not, until the missing admission has left its window.
type mirror struct {
	now        func() int64
	log        *slog.Logger
	late       atomic.Int64 // writes that no call waits for any more
	incomplete atomic.Int64 // until when the records lack something
	unrecorded atomic.Uint64

	mu   sync.Mutex
	last map[recordKey]chan struct{} // of each key: closes when its newest write is behind all others
}

const (
	// maxLate is how many late writes there may be: on a disk that hangs none of them ends.
	maxLate = 64
	// patience is how long a call waits for the node's own disk.
	patience = time.Second
)

var errIncomplete = errors.New("the node's own records lack admissions that still count")

// write copies a decision of Redis, which counts until a moment; 0 means that without it the
// records are only too strict. It has a context of its own, as a send does not depend on it. The writes
// of a key are made in order.
func (m *mirror) write(k recordKey, until int64, write func(ctx context.Context) error) {
	count := sync.OnceFunc(func() { // a decision that the records lack, or took late
		if until > 0 {
			m.unrecorded.Add(1)
		}
	})
	if m.late.Load() >= maxLate {
		count()
		m.lacks(until, errors.New("too many earlier writes have not ended"))
		return
	}
	m.mu.Lock()
	before, made := m.last[k], make(chan struct{})
	m.last[k] = made
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		ctx, durable := cache.Batch(context.Background()) // the next one need not wait for the disk
		err := recovered.Call(m.log, func() error { return write(ctx) })
		m.mu.Lock()
		if m.last[k] == made {
			delete(m.last, k)
		}
		m.mu.Unlock()
		close(made)
		if err = errors.Join(err, durable(ctx)); err != nil {
			count()
			m.lacks(until, err)
		}
	}()
	wait := patience
	if m.late.Load() > 0 { // a send that is charged to several rules waits once
		wait = 0
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	select {
	case <-done:
	case <-enough.C:
		count()
		m.late.Add(1)
		go func() {
			<-done
			m.late.Add(-1)
		}()
	}
}

// lacks notes that the records lack something that counts until a moment.
func (m *mirror) lacks(until int64, cause error) {
	if until == 0 {
		return
	}
	before := m.incomplete.Load()
	for until > before && !m.incomplete.CompareAndSwap(before, until) {
		before = m.incomplete.Load()
	}
	if before <= m.now() {
		m.log.Error("an admission could not be recorded on this node: it refuses during an outage of Redis until that has left its window",
			"until", time.UnixMilli(until).UTC(), "cause", cause)
	}
}

// complete returns errIncomplete while the records lack something, or may.
func (m *mirror) complete() error {
	if m.late.Load() > 0 || m.incomplete.Load() > m.now() {
		return errIncomplete
	}
	return nil
}
