package standby

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// Options say what a node works with. All are required, but for Timeout.
type Options struct {
	// Client is the one that the shared limiters and stores use. Their keys have {key} as
	// hash tag.
	Client redis.UniversalClient
	// Prefix begins the keys of Redis that are written to see whether it takes writes.
	Prefix string
	// Timeout is how long a probe waits for its reply; the default and the least is 250 ms.
	Timeout time.Duration
	// Store is on the node's disk. It is closed after the Standby.
	Store *cache.Store
	// Clock is the one that Store and the node's own limiters and stores use.
	Clock *Clock
	// Log receives a line when an outage begins and when it ends.
	Log *slog.Logger
}

// Standby decides whether a node continues alone, and syncs its journal to Redis afterwards.
type Standby struct {
	o       Options
	prober  *prober.Prober
	journal *journal
	mirror  *mirror
	parts   sync.Map // *part by name
	locks   [1024]sync.RWMutex
	seed    maphash.Seed

	admitted atomic.Uint64

	mu     sync.Mutex
	state  state
	outage State     // as it was when the outage began
	began  time.Time // of the outage

	work       context.Context // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup
}

const forever = 1<<63 - 1

// New reads the journal that an earlier process has left.
func New(o Options) (*Standby, error) {
	s := &Standby{o: o, prober: prober.New(o.Client, o.Prefix, o.Timeout), seed: maphash.MakeSeed()}
	s.work, s.stop = context.WithCancel(context.Background())
	s.mirror = &mirror{now: o.Clock.Now, log: o.Log}
	s.journal = &journal{table: o.Store.Table("journal"), most: maxOperations, records: map[recordKey]map[throttle.ID]operation{}}
	if err := s.load(); err != nil {
		s.prober.Close()
		return nil, fmt.Errorf("standby: reading the journal of an earlier process: %w", err)
	}
	if left := s.journal.size(); left > 0 {
		s.begin(returning)
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
	s.prober.Close()
	_ = s.save()
	if left := s.journal.size(); left > 0 {
		s.o.Log.Warn("the journal is not synced to Redis; the next start syncs it", "operations", left)
	}
}

// state says who decides.
type state int

const (
	connected state = iota // Redis
	alone                  // the node, about the keys of masters that are away
	returning              // Redis, about each key whose entries are synced
)

// next returns the state that follows: away says that a master is, drained that the journal is
// synced.
func (s state) next(away, drained bool) state {
	switch {
	case away:
		return alone
	case s == connected || drained:
		return connected
	}
	return returning
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
	now := s.observe(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != connected {
		now.Since = s.outage.Since
	}
	return now
}

// observe moves the node to the state of its masters, and logs where an outage begins and ends.
func (s *Standby) observe(drained bool) State {
	now := State{
		Journal: s.journal.size(), Admitted: s.admitted.Load(),
		Unrecorded: s.mirror.unrecorded.Load(), Late: s.prober.Late(),
	}
	var lost *prober.Master
	for _, m := range s.prober.Masters() {
		if m.State() == prober.Away {
			lost = m
			now.Away++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.state
	s.state = from.next(lost != nil, drained)
	switch {
	case from == connected && s.state == alone:
		s.begin(alone)
		log := s.o.Log
		if lost.Address != "" { // as in a Cluster
			log = log.With("master", lost.Address)
		}
		log.Warn("Redis is away: this node uses its own records", "cause", lost.Cause())
	case from != connected && s.state == connected:
		s.o.Log.Info("Redis is back, and the journal is synced", "lasted", time.Since(s.began).Round(time.Millisecond).String(),
			"admitted", now.Admitted-s.outage.Admitted)
	}
	if s.state == connected {
		s.outage.Admitted = now.Admitted // sends may be admitted alone before observe sees the outage
	}
	return now
}

// begin notes when an outage began.
func (s *Standby) begin(in state) {
	s.state, s.began = in, time.Now()
	s.outage.Since = s.o.Clock.Now()
}

// Ready returns an error if the node cannot decide now: a master does not take a write, or is away
// and the node cannot continue alone.
func (s *Standby) Ready(ctx context.Context) error {
	continues := false
	for _, m := range s.prober.Current(ctx) {
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

// lock returns the lock of a record. It is held for reading while Redis decides, and for writing
// while the node decides alone or syncs, so no two of these overlap on a record.
func (s *Standby) lock(k recordKey) *sync.RWMutex {
	return &s.locks[maphash.Comparable(s.seed, k)%uint64(len(s.locks))]
}
