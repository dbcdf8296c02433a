package outage_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

const start = int64(1_800_000_000_000)

// openShared is a shared history that other nodes use as well.
func openShared(t testing.TB, p throttle.Policy, clock *clocktest.Clock) *shared {
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
		Disk: disk, Away: unavailableIsAway, Shared: s.ready, Now: now, Log: n.log.logger(), Pause: 2 * time.Millisecond,
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
	closeAtOnce(n.watch)
}

// closeAtOnce ends a watch, whatever is owed.
func closeAtOnce(w *outage.Watch) {
	ended, end := context.WithCancel(context.Background())
	end()
	w.Close(ended)
}

func (n *node) take(key string, id throttle.ID) throttle.Verdict {
	n.t.Helper()
	v, err := n.Take(context.Background(), key, id)
	if err != nil {
		n.t.Fatalf("take: %v", err)
	}
	return v
}

func (n *node) healthy() {
	n.t.Helper()
	awaitHealth(n.t, n.watch)
}

// awaitHealth waits for the end of an outage.
func awaitHealth(t testing.TB, w *outage.Watch) {
	t.Helper()
	servertest.Eventually(t, "the end of the outage", func() bool { s := w.State(); return !s.Degraded && s.Debts == 0 })
}

func (n *node) history(of throttle.Historian, key string) throttle.History {
	n.t.Helper()
	h, err := of.History(context.Background(), key)
	if err != nil {
		n.t.Fatal(err)
	}
	return h
}
