package standby

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// mirror writes what Redis admitted to the node's own records, and knows whether they are
// complete. After a write that failed they are not, until what they lack has left its window.
type mirror struct {
	now        func() int64
	log        *slog.Logger
	running    chan struct{} // full of writes
	late       atomic.Int64  // writes that no call waits for any more
	incomplete atomic.Int64  // until when the records lack something
	unrecorded atomic.Uint64
}

const (
	// maxMirrors is how many writes run at once: on a disk that hangs none of them ends.
	maxMirrors = 64
	// patience is how long a call waits for the node's own disk.
	patience = time.Second
)

var errIncomplete = errors.New("the node's own records lack admissions that still count")

// write has the own records take what Redis decided, which counts until a moment; 0 means that
// without it they are only too strict.
func (m *mirror) write(ctx context.Context, until int64, write func(ctx context.Context) error) {
	select {
	case m.running <- struct{}{}:
	default:
		m.lacks(until, errors.New("too many earlier writes have not ended"))
		return
	}
	done := make(chan bool, 1)
	go func() {
		if err := write(context.WithoutCancel(ctx)); err != nil {
			m.lacks(until, err)
		}
		<-m.running
		done <- true
	}()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-done:
	case <-enough.C:
		m.late.Add(1)
		if until > 0 {
			m.unrecorded.Add(1)
		}
		go func() { <-done; m.late.Add(-1) }()
	}
}

// lacks notes that the records lack something that counts until a moment.
func (m *mirror) lacks(until int64, cause error) {
	if until == 0 {
		return
	}
	m.unrecorded.Add(1)
	before := m.incomplete.Load()
	for until > before && !m.incomplete.CompareAndSwap(before, until) {
		before = m.incomplete.Load()
	}
	if before <= m.now() {
		m.log.Error("writing an admission to disk failed: without Redis this node refuses until the admission has left its window",
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
