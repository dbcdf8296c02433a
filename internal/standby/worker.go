package standby

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/recovered"
)

const (
	// pause is the time between two passes over the journal.
	pause = 250 * time.Millisecond
	// sweepEvery is how often expired operations are dropped, and the clock is saved.
	sweepEvery = 10 * time.Second
	// syncTimeout bounds the sync of one record.
	syncTimeout = 2 * time.Second
)

// run syncs the journal to Redis until the standby ends. A panic in the sync of a record fails that sync. Any other panic
// ends the process: the journal on disk is right, and the one in memory may not be.
func (s *Standby) run() {
	ticker, swept, saved := time.NewTicker(pause), time.Now(), s.mirror.incomplete.Load()
	defer ticker.Stop()
	for s.work.Err() == nil {
		s.syncAll()
		s.noteOutage()
		due := time.Since(swept) >= sweepEvery
		if due {
			swept = time.Now()
			s.sweep()
		}
		if until := s.mirror.incomplete.Load(); (due || until != saved) && s.save() == nil {
			saved = until
		}
		select {
		case <-ticker.C:
		case <-s.work.Done():
		}
	}
}

// waiting returns the records to sync. Those of a name that is no longer wrapped, such as that of
// a removed rule, wait until it is wrapped again, or until they expire.
func (s *Standby) waiting() []waiting {
	return slices.DeleteFunc(s.journal.all(), func(w waiting) bool {
		_, known := s.parts.Load(w.part)
		return !known
	})
}

// syncAll syncs the records of masters that are not away, several at a time. After some
// failures it leaves the rest for the next pass. It begins with the oldest: what is removed together are neighbours on
// disk, or each would be another page to write.
func (s *Standby) syncAll() {
	const together, mostFailures = 32, 8
	var failures atomic.Int64
	var syncing sync.WaitGroup
	free := make(chan struct{}, together)
	due := slices.DeleteFunc(s.waiting(), func(w waiting) bool { return s.o.Prober.MasterOf(w.key).State() == prober.Away })
	slices.SortFunc(due, func(a, b waiting) int { return cmp.Compare(a.since, b.since) })
	for _, w := range due {
		free <- struct{}{}
		if failures.Load() >= mostFailures || s.work.Err() != nil {
			break
		}
		syncing.Go(func() {
			if recovered.Call(s.o.Log, func() error { return s.syncRecord(w.recordKey) }) != nil {
				failures.Add(1)
			}
			<-free
		})
	}
	syncing.Wait()
}

// syncRecord syncs all operations of a record.
func (s *Standby) syncRecord(k recordKey) error {
	found, _ := s.parts.Load(k.part)
	p := found.(*part)
	for s.journal.has(k) {
		ctx, cancel := context.WithTimeout(s.work, syncTimeout)
		m := s.o.Prober.MasterOf(k.key)
		err := p.settle(ctx, m, k.key)
		if err != nil && err != errAgain {
			m.Failed(ctx, err)
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep drops the operations that have expired.
func (s *Standby) sweep() {
	now := s.o.Clock.Now()
	for _, w := range s.journal.all() {
		k := w.recordKey
		if len(s.journal.some(k, 1, now)) == 0 {
			continue
		}
		unlock, err := s.locks.lock(s.work, k, exclusive)
		if err != nil {
			return
		}
		s.journal.drop(k, s.journal.some(k, maxOperations, now))
		unlock()
	}
}

// save writes what the next process needs: how far Redis's clock is ahead, and until when the
// node's own records are incomplete.
func (s *Standby) save() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stored := binary.BigEndian.AppendUint64(nil, uint64(s.o.Clock.Now()-time.Now().UnixMilli()))
	stored = binary.BigEndian.AppendUint64(stored, uint64(s.mirror.incomplete.Load()))
	return s.o.Store.Table("standby").Update(ctx, "state", func([]byte, int64) ([]byte, int64) { return stored, forever })
}

// load reads what an earlier process has left.
func (s *Standby) load() error {
	stored, err := s.o.Store.Table("standby").Get(s.work, "state")
	if err == nil && len(stored) == 16 {
		aheadOfMachine(s.o.Clock, int64(binary.BigEndian.Uint64(stored)))
		s.mirror.incomplete.Store(int64(binary.BigEndian.Uint64(stored[8:])))
	}
	return errors.Join(err, s.journal.load(s.work))
}
