package outage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A fault is what becomes of the calls to the shared history.
type fault int

const (
	none    fault = iota
	dead          // nothing is done, and everybody knows
	silent        // nothing is done, and nobody knows
	unheard       // all is done, and the reply is lost
)

var (
	errDead   = errors.New("dead")
	errSilent = errors.New("silent")
)

// A shared history can be made to fail. It is that of all nodes.
type shared struct {
	outage.Survey
	mu      sync.Mutex
	fault   fault
	records []throttle.Admission // that were asked for
	during  func()               // happens once, while the answer to a Take is on its way
}

func (s *shared) set(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *shared) now() fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// call carries out a call, or not.
func (s *shared) call(do func() error) error {
	switch s.now() {
	case dead:
		return throttle.Unavailable("asking", errDead)
	case silent:
		return throttle.Unavailable("asking", errSilent)
	case unheard:
		_ = do()
		return throttle.Unavailable("asking", errSilent)
	}
	return do()
}

func (s *shared) ready(context.Context) error { return s.call(func() error { return nil }) }

func (s *shared) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	var done throttle.Verdict
	if err = s.call(func() (err error) { done, err = s.Survey.Take(ctx, key, id); return err }); err == nil {
		v = done
	}
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	return v, err
}

func (s *shared) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	err = s.call(func() (err error) { v, err = s.Survey.Peek(ctx, key); return err })
	return v, err
}

func (s *shared) Release(ctx context.Context, key string, id throttle.ID) (released bool, err error) {
	err = s.call(func() (err error) { released, err = s.Survey.Release(ctx, key, id); return err })
	return released && err == nil, err
}

func (s *shared) Reset(ctx context.Context, key string) (cleared int, err error) {
	err = s.call(func() (err error) { cleared, err = s.Survey.Reset(ctx, key); return err })
	return cleared, err
}

func (s *shared) History(ctx context.Context, key string) (h throttle.History, err error) {
	err = s.call(func() (err error) { h, err = s.Survey.History(ctx, key); return err })
	return h, err
}

func (s *shared) Record(ctx context.Context, key string, a throttle.Admission) error {
	return s.call(func() error {
		s.mu.Lock()
		s.records = append(s.records, a)
		s.mu.Unlock()
		return s.Survey.Record(ctx, key, a)
	})
}

const start = int64(1_800_000_000_000)

func policy(t testing.TB, text string) throttle.Policy {
	t.Helper()
	p, err := throttle.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openShared is a shared history that other nodes use as well.
func openShared(t testing.TB, p throttle.Policy, clock *throttletest.Clock) *shared {
	t.Helper()
	return &shared{Survey: openLimiter(t, cachetest.Open(t, cache.Memory), p, clock.Now)}
}

func openLimiter(t testing.TB, disk *cache.Disk, p throttle.Policy, now func() int64) *local.Limiter {
	t.Helper()
	l, err := local.New(disk, local.Options{Policy: p, Now: now, Size: cache.Size{Entries: 100, Bytes: 1 << 18}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// A node is one of those that share a history.
type node struct {
	*outage.Historian
	t      testing.TB
	watch  *outage.Watch
	own    *local.Limiter
	shared *shared
	log    *journal
}

// openNode opens a node. Its own history is on the disk.
func openNode(t testing.TB, s *shared, disk *cache.Disk, p throttle.Policy, now func() int64, change func(*outage.Options)) *node {
	t.Helper()
	n := &node{t: t, shared: s, log: new(journal), own: openLimiter(t, disk, p, now)}
	o := outage.Options{
		Disk: disk, Kept: true, Shared: s.ready, Now: now, Log: n.log.logger(), Pause: 2 * time.Millisecond,
		Undone: func(err error) bool { return errors.Is(err, errDead) },
	}
	if change != nil {
		change(&o)
	}
	var err error
	if n.watch, err = outage.NewWatch(o); err != nil {
		t.Fatal(err)
	}
	n.Historian = n.watch.Historian("mailbox", p.Longest(), s, n.own)
	t.Cleanup(func() { n.close() })
	return n
}

func (n *node) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.watch.Close(ctx)
}

func (n *node) take(key string, id throttle.ID) throttle.Verdict {
	n.t.Helper()
	v, err := n.Take(context.Background(), key, id)
	if err != nil {
		n.t.Fatalf("take: %v", err)
	}
	return v
}

// healthy waits for the end of an outage.
func (n *node) healthy() {
	n.t.Helper()
	await(n.t, "the end of the outage", func() bool { s := n.watch.State(); return !s.Degraded && s.Debts == 0 })
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (n *node) history(of throttle.Historian, key string) throttle.History {
	n.t.Helper()
	h, err := of.History(context.Background(), key)
	if err != nil {
		n.t.Fatal(err)
	}
	return h
}
