package standby

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
)

// own knows whether the node's own records have all that Redis has admitted through this node. They
// have, until a mirror fails; then not until what it lacks has left its window.
type own struct {
	now        func() int64
	log        *slog.Logger
	running    chan struct{} // full of mirrors
	late       atomic.Int64  // those of them that no call waits for any more
	until      atomic.Int64  // until when the records are incomplete
	unrecorded atomic.Uint64

	saving sync.Mutex
	saved  int64 // what of until is on disk
}

// mostMirrors is how many mirrors run at once: a disk that hangs ends none of them.
const mostMirrors = 64

var errIncomplete = errors.New("the node's own records lack admissions that still count")

// mirror has the own records take what Redis has decided, which counts until a moment; 0 means
// that without it they are only too strict. It waits at most for patience, and hardly while another
// mirror is late.
func (o *own) mirror(ctx context.Context, until int64, write func(ctx context.Context) error) {
	wait := patience
	if o.late.Load() > 0 {
		wait = patience / 100
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	select {
	case o.running <- struct{}{}:
	default:
		o.lacks(until, errors.New("too many earlier writes have not ended"))
		return
	}
	done := make(chan bool, 1)
	go func() {
		if err := write(context.WithoutCancel(ctx)); err != nil {
			o.lacks(until, err)
		}
		<-o.running
		done <- true
	}()
	select {
	case <-done:
	case <-enough.C:
		o.late.Add(1)
		if until > 0 {
			o.unrecorded.Add(1)
		}
		go func() { <-done; o.late.Add(-1) }()
	}
}

// lacks notes that the records lack something that counts until a moment.
func (o *own) lacks(until int64, cause error) {
	if until == 0 {
		return
	}
	o.unrecorded.Add(1)
	before := o.until.Load()
	for until > before && !o.until.CompareAndSwap(before, until) {
		before = o.until.Load()
	}
	if before <= o.now() {
		o.log.Error("an admission could not be recorded on this node: it does not go on alone until that has left its window",
			"until", time.UnixMilli(until).UTC(), "cause", cause)
	}
}

// complete returns errIncomplete while the records lack something, or may.
func (o *own) complete() error {
	if o.late.Load() > 0 || o.incomplete() > 0 {
		return errIncomplete
	}
	return nil
}

// incomplete returns until when the records lack something, 0 if they do not.
func (o *own) incomplete() int64 {
	if until := o.until.Load(); until > o.now() {
		return until
	}
	return 0
}

const incompleteKey = "incomplete"

func (o *own) load(ctx context.Context, table *cache.Table) error {
	stored, err := table.Get(ctx, incompleteKey)
	if err == nil && len(stored) == 8 {
		o.saved = int64(binary.BigEndian.Uint64(stored))
		o.until.Store(o.saved)
	}
	return err
}

// save writes until when the records are incomplete, as far as the disk takes it.
func (o *own) save(table *cache.Table) {
	o.saving.Lock()
	defer o.saving.Unlock()
	until := o.until.Load()
	if until == o.saved {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stored := binary.BigEndian.AppendUint64(nil, uint64(until))
	if table.Update(ctx, incompleteKey, func([]byte) ([]byte, int64) { return stored, until }) == nil {
		o.saved = until
	}
}
