package standby

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
)

// Options say what a node works with. All are required.
type Options struct {
	// Prober is that of the client that the shared limiters and stores use. Their keys have {key} as
	// hash tag. It is closed after the Standby.
	Prober *prober.Prober
	// Store is on the node's disk. It is closed after the Standby.
	Store *cache.Store
	// Clock is the one that Store and the node's own limiters and stores use.
	Clock *redisx.Clock
	// Log receives a line when an outage begins and when it ends.
	Log *slog.Logger
}

// Standby decides whether a node continues alone, and syncs its journal to Redis afterwards.
type Standby struct {
	o       Options
	journal *journal
	mirror  *mirror
	parts   sync.Map // *part by name
	locks   *locks

	admitted atomic.Uint64

	mu     sync.Mutex             // held while outage changes
	outage atomic.Pointer[outage] // nil while Redis decides, and lacks nothing

	work       context.Context // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup
}

const forever = 1<<63 - 1

// New reads the journal that an earlier process has left.
func New(o Options) (*Standby, error) {
	s := &Standby{o: o, locks: newLocks()}
	s.work, s.stop = context.WithCancel(context.Background())
	s.mirror = &mirror{now: o.Clock.Now, log: o.Log, last: map[recordKey]chan struct{}{}}
	s.journal = newJournal(o.Store.Table("journal"), maxOperations)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("standby: reading the journal of an earlier process: %w", err)
	}
	if left := s.journal.size(); left > 0 {
		s.beginOutage()
		o.Log.Warn("the journal of an earlier process is not synced to Redis yet", "operations", left)
	}
	return s, nil
}

// Start starts to sync the journal to Redis.
func (s *Standby) Start() { s.background.Go(s.run) }

// Close ends the standby. Until ctx ends it tries to sync the journal to Redis; the next process
// syncs the rest. The wrapped limiters and stores must not be used any more.
func (s *Standby) Close(ctx context.Context) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for s.journal.size() > 0 && ctx.Err() == nil {
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	s.stop()
	s.background.Wait()
	_ = s.save()
	if left := s.journal.size(); left > 0 {
		s.o.Log.Warn("the journal is not synced to Redis; the next start syncs it", "operations", left)
	}
}

// State is what metrics and health checks show.
type State struct {
	Since      int64  // since when the node is alone or returning, by Redis's clock; 0 if it is not
	Away       int    // masters that are away
	Journal    int    // operations to sync
	Admitted   uint64 // admissions without Redis, since the start
	Unrecorded uint64 // admissions by Redis that the node's own records lack, or took late
	Late       uint64 // times this process was so late that silence proved nothing
}

// State returns the state of all masters together.
func (s *Standby) State() State {
	now := State{
		Journal: s.journal.size(), Admitted: s.admitted.Load(),
		Unrecorded: s.mirror.unrecorded.Load(), Late: s.o.Prober.Late(),
	}
	for _, m := range s.o.Prober.Masters() {
		if m.State() == prober.Away {
			now.Away++
		}
	}
	if o := s.outage.Load(); o != nil {
		now.Since = o.since
	}
	return now
}

// outage is the time from when a master is away until Redis has what the node decided alone.
type outage struct {
	since    int64 // by Redis's clock
	began    time.Time
	admitted uint64 // before it
}

// beginOutage notes that an outage begins.
func (s *Standby) beginOutage() {
	s.outage.Store(&outage{s.o.Clock.Now(), time.Now(), s.admitted.Load()})
}

// noteOutage notes and logs where an outage begins or ends.
func (s *Standby) noteOutage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost *prober.Master
	for _, m := range s.o.Prober.Masters() {
		if m.State() == prober.Away {
			lost = m
		}
	}
	o := s.outage.Load()
	switch {
	case o == nil && lost != nil:
		s.beginOutage()
		log := s.o.Log
		if lost.Address != "" { // as in a Cluster
			log = log.With("master", lost.Address)
		}
		log.Warn("Redis is away: this node uses its own records", "cause", lost.Cause())
	case o != nil && lost == nil && len(s.waiting()) == 0:
		s.outage.Store(nil)
		s.o.Log.Info("Redis is back, and the journal is synced", "lasted", time.Since(o.began).Round(time.Millisecond).String(),
			"admitted", s.admitted.Load()-o.admitted)
	}
}

// Ready returns an error if the node cannot decide now: a master does not take a write, or is away
// and the node cannot continue alone.
func (s *Standby) Ready(ctx context.Context) error {
	continues := false
	for _, m := range s.o.Prober.Current(ctx) {
		if m.State() == prober.Away {
			continues = true
		} else if err := m.Try(ctx); err != nil {
			if !m.Failed(ctx, err) {
				return throttle.Unavailable("asking Redis", err)
			}
			continues = true
		}
	}
	if !continues {
		return nil
	}
	err := errors.Join(s.mirror.complete(), s.journal.room())
	if err == nil {
		err = s.o.Store.Ready(ctx)
	}
	if err != nil {
		return throttle.Unavailable("continuing alone", err)
	}
	return nil
}
