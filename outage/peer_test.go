package outage_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
)

// timeout is that of Redis in these tests, and slack what a busy machine may add to it.
const (
	timeout = time.Second
	slack   = 2 * time.Second
)

// A peer is a node in front of real servers.
type peer struct {
	*outage.Historian
	t      *testing.T
	watch  *outage.Watch
	shared *cluster.Limiter
	meters *cluster.Meters // on the same store
	own    *local.Limiter
	clock  func() int64  // that of Redis, as far as the node knows
	slow   time.Duration // the longest that a take has taken

	admitted map[string][]string // by send
}

func openPeer(t *testing.T, url string, p throttle.Policy) *peer {
	t.Helper()
	return openPeerOn(t, cachetest.Open(t, cache.Memory), url, p)
}

// openPeerOn opens one whose own history is on the disk. It begins like one that was killed
// if there is something on it.
func openPeerOn(t *testing.T, disk *cache.Disk, url string, p throttle.Policy) *peer {
	t.Helper()
	return openPeerWith(t, disk, redisstore.Options{URL: url, Timeout: timeout}, p)
}

func openPeerWith(t *testing.T, disk *cache.Disk, o redisstore.Options, p throttle.Policy) *peer {
	t.Helper()
	store, err := redisstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := cluster.New(store, p)
	if err != nil {
		t.Fatal(err)
	}
	meters, err := cluster.NewMeters(store)
	if err != nil {
		t.Fatal(err)
	}
	n := &peer{t: t, shared: shared, meters: meters, own: openLimiter(t, disk, p, store.Now), clock: store.Now, admitted: map[string][]string{}}
	n.watch, err = outage.NewWatch(outage.Options{
		Disk: disk, Shared: store.Ready, Now: store.Now, Pause: 20 * time.Millisecond,
		Away:  func(err error) bool { return errors.Is(err, redisstore.ErrAway) },
		Wrong: func(err error) bool { return errors.Is(err, redisstore.ErrReply) },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Historian = n.watch.Historian("mailbox", p.Longest(), shared, n.own)
	n.watch.Start()
	t.Cleanup(func() {
		n.end()
		_ = store.Close() // its servers may be gone
	})
	return n
}

// end ends the node at once, whatever it owes.
func (n *peer) end() {
	closeAtOnce(n.watch)
	n.own.Close()
}

func (n *peer) take(key string) (throttle.Verdict, throttle.ID) {
	n.t.Helper()
	id, began := throttle.NewID(), time.Now()
	v, err := n.Take(context.Background(), key, id)
	n.slow = max(n.slow, time.Since(began))
	if err != nil {
		n.t.Fatalf("take: %v", err)
	}
	return v, id
}

// awaitAlone waits until the node knows that Redis is away.
func (n *peer) awaitAlone() {
	n.t.Helper()
	servertest.Eventually(n.t, "the node to go on alone", func() bool {
		v, err := n.Peek(context.Background(), "somebody@example.com")
		return err == nil && v.Degraded
	})
}

// send takes, together or alone, and remembers what was admitted.
func (n *peer) send(key string, alone bool) throttle.Verdict {
	n.t.Helper()
	v, id := n.take(key)
	if v.Degraded != alone {
		n.t.Errorf("%s: degraded %v", key, v.Degraded)
	}
	if v.Allowed {
		n.admitted[key] = append(n.admitted[key], id.String())
	}
	return v
}

// onRecord fails the test unless Redis has what was admitted, each once and at its time.
func (n *peer) onRecord() {
	n.t.Helper()
	for key, ids := range n.admitted {
		slices.Sort(ids)
		if got := n.record(key); !slices.Equal(got, ids) {
			n.t.Errorf("%s: on record is %v, want %v", key, got, ids)
		}
		sameTimes(n.t, n, key)
	}
}

// record is what is on record of a key.
func (n *peer) record(key string) (ids []string) {
	n.t.Helper()
	for _, send := range n.history(key) {
		ids = append(ids, send.ID.String())
	}
	slices.Sort(ids)
	return ids
}

func (n *peer) history(key string) throttle.History {
	n.t.Helper()
	h, err := n.shared.History(context.Background(), key)
	if err != nil {
		n.t.Fatal(err)
	}
	return h
}

// sameTimes fails unless Redis has each send at the time at which the node made it.
func sameTimes(t *testing.T, n *peer, key string) {
	t.Helper()
	own, err := n.own.History(context.Background(), key)
	there, failed := n.shared.History(context.Background(), key)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	for _, send := range there {
		// A reply that was lost leaves the time at which Redis decided, which the node
		// could not learn.
		i := own.Find(send.ID)
		if i < 0 || max(own[i].At-send.At, send.At-own[i].At) > timeout.Milliseconds()+slack.Milliseconds() {
			t.Errorf("%s: Redis has %v, the node %v", key, there, own)
		}
	}
}
