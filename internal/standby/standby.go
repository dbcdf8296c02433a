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

// Options say what a node works with. Client, Store and Clock are required.
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
	// Clock is the one that Store and the node's own limiters and stores go by.
	Clock *Clock
	// Log is told when an outage begins and ends. The default is silence.
	Log *slog.Logger
}

// Standby decides whether a node goes on alone, and tells Redis afterwards.
type Standby struct {
	o        Options
	table    *cache.Table
	journal  *journal
	own      *own
	lateness *prober.Lateness
	masters  sync.Map // *master by address
	parts    sync.Map // *part by name
	locks    [1024]sync.RWMutex
	seed     maphash.Seed

	admitted, told atomic.Uint64

	work       context.Context // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup
	wake       chan struct{}
	sweptAt    time.Time
}

const (
	minTimeout = 250 * time.Millisecond
	forever    = 1<<63 - 1
)

// New reads the journal that an earlier process has left.
func New(o Options) (*Standby, error) {
	if o.Client == nil || o.Store == nil || o.Clock == nil {
		return nil, errors.New("standby: Client, Store and Clock are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Timeout = max(o.Timeout, minTimeout)
	s := &Standby{o: o, table: o.Store.Table("standby"), seed: maphash.MakeSeed(), wake: make(chan struct{}, 1), sweptAt: time.Now()}
	s.work, s.stop = context.WithCancel(context.Background())
	began := time.Now()
	// A probe waits for a chain of some four timers and wake-ups: while each is late by less
	// than a quarter of the timeout, it is not this process that was silent.
	s.lateness = prober.NewLateness(func() time.Duration { return time.Since(began) }, o.Timeout/4)
	s.own = &own{now: o.Clock.Now, log: o.Log, running: make(chan struct{}, mostMirrors)}
	s.journal = &journal{table: o.Store.Table("journal"), most: mostOperations, entries: map[string]*entry{}}
	if err := s.load(context.Background()); err != nil {
		return nil, fmt.Errorf("standby: reading what an earlier process has left: %w", err)
	}
	return s, nil
}

// load reads the state of an earlier process. A master whose keys are in the journal is returning.
func (s *Standby) load(ctx context.Context) error {
	err := errors.Join(s.o.Clock.load(ctx, s.table), s.own.load(ctx, s.table), s.journal.load(ctx, s.masterOf))
	if err != nil {
		return err
	}
	for _, e := range s.journal.entries {
		for _, o := range e.operations {
			s.o.Clock.notBefore(o.a.At)
		}
		if e.master.state == connected {
			s.begin(e.master)
			e.master.state = returning
		}
	}
	if left := s.journal.size(); left > 0 {
		s.o.Log.Warn("Redis has not been told all that an earlier process decided alone", "operations", left)
	}
	return nil
}

// Start begins to tell Redis what is in the journal, and to measure the lateness of this process.
func (s *Standby) Start() {
	s.background.Go(func() { s.lateness.Run(s.work) })
	s.background.Go(s.run)
}

// Close ends the standby. Until ctx ends it tries to tell Redis what is in the journal; the rest
// is told by the next process. What was wrapped must not be used any more.
func (s *Standby) Close(ctx context.Context) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for s.rouse(); s.journal.size() > 0 && ctx.Err() == nil; {
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	s.stop()
	s.background.Wait()
	s.save()
	if left := s.journal.size(); left > 0 {
		s.o.Log.Warn("Redis was not told all that this node decided alone; the next start does", "operations", left)
	}
}

// State is what metrics and health checks show.
type State struct {
	Degraded   bool          // a master is away, or is not told all yet
	Since      int64         // since when, by Redis's clock; 0 if it is not
	Alone      bool          // a master is away
	Away       int           // how many are
	Journal    int           // operations that Redis is to be told of
	Admitted   uint64        // admissions without Redis, since the start
	Told       uint64        // those that Redis was told of
	Unrecorded uint64        // admissions by Redis that the node's own records lack, or took late
	Incomplete int64         // until when the node does not go on alone for that reason; 0 if it does
	Lateness   time.Duration // the worst lateness of this process in the last half minute or more
}

// State returns the state of all masters together.
func (s *Standby) State() State {
	state := s.counts()
	for _, m := range s.allMasters() {
		m.mu.Lock()
		if m.state != connected && (!state.Degraded || m.since < state.Since) {
			state.Since = m.since
		}
		state.Degraded = state.Degraded || m.state != connected
		if m.state == away {
			state.Alone = true
			state.Away++
		}
		m.mu.Unlock()
	}
	state.Lateness = s.lateness.Worst()
	return state
}

func (s *Standby) counts() State {
	return State{
		Journal: s.journal.size(), Admitted: s.admitted.Load(), Told: s.told.Load(),
		Unrecorded: s.own.unrecorded.Load(), Incomplete: s.own.incomplete(),
	}
}

// Ready returns an error if the node cannot decide now: Redis does not take a write, or it is away
// and the node cannot go on alone.
func (s *Standby) Ready(ctx context.Context) error {
	if s.State().Alone {
		if err := errors.Join(s.own.complete(), s.journal.room(record)); err != nil {
			return throttle.Unavailable("going on alone", err)
		}
		if err := s.o.Store.Ready(ctx); err != nil {
			return throttle.Unavailable("going on alone", err)
		}
		return nil
	}
	key, _ := s.probeKey("")
	err := s.o.Client.Set(ctx, key, 1, time.Second).Err()
	if err == nil {
		return nil
	}
	m := s.master(s.addressOf(key))
	if s.awaitAway(ctx, m, err) {
		return s.Ready(ctx)
	}
	return throttle.Unavailable("asking Redis", err)
}

// rouse wakes the worker.
func (s *Standby) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lock returns the lock of a key's records. Redis decides with it held for reading, the node alone
// or what tells Redis with it held for writing; so no two of them overlap on a key.
func (s *Standby) lock(holder string) *sync.RWMutex {
	return &s.locks[maphash.String(s.seed, holder)%uint64(len(s.locks))]
}
