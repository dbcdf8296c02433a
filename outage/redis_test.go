package outage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
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
	n := &peer{t: t, shared: shared, own: openLimiter(t, disk, p, store.Now), clock: store.Now, admitted: map[string][]string{}}
	n.watch, err = outage.NewWatch(outage.Options{
		Disk: disk, Kept: true, Shared: store.Ready, Now: store.Now, Pause: 20 * time.Millisecond,
		Undone: redisstore.Undone,
		Wrong:  func(err error) bool { return errors.Is(err, redisstore.ErrReply) },
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

// A fault of Redis begins when it is called, and ends when mend is.
type redisFault func(t *testing.T, s *redistest.Server, line *redistest.FaultyProxy) (mend func())

// order has a server do something.
func order(t *testing.T, s *redistest.Server, words ...any) {
	t.Helper()
	if err := s.Client().Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words[0], err)
	}
}

// redisFaults are the ways in which Redis can be away.
var redisFaults = map[string]redisFault{
	"killed": func(_ *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		s.Kill()
		return s.Restart
	},
	"stopped": func(_ *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		s.Pause()
		return s.Resume
	},
	"refused": func(_ *testing.T, _ *redistest.Server, line *redistest.FaultyProxy) func() {
		line.Refuse()
		return line.Pass
	},
	"cut off": func(_ *testing.T, _ *redistest.Server, line *redistest.FaultyProxy) func() {
		line.Swallow()
		return line.Pass
	},
	"replies lost": func(_ *testing.T, _ *redistest.Server, line *redistest.FaultyProxy) func() {
		line.DropReplies(1_000_000, "evalsha", "eval")
		return line.Pass
	},
	"out of memory": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "CONFIG", "SET", "maxmemory", "1")
		return func() { order(t, s, "CONFIG", "SET", "maxmemory", "0") }
	},
	"read-only": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "REPLICAOF", "127.0.0.1", "1")
		return func() { order(t, s, "REPLICAOF", "NO", "ONE") }
	},
	"another password": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "ACL", "SETUSER", "default", "-@all", "+auth", "+acl")
		return func() { order(t, s, "ACL", "SETUSER", "default", "+@all") }
	},
	"loading": loading,
}

// loading has Redis killed, and started again with so much on its disk that it reads for as
// long as it is not told to hurry.
func loading(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
	order(t, s, "DEBUG", "POPULATE", 50_000, "ballast")
	order(t, s, "BGREWRITEAOF")
	awaitKept(t, s)
	order(t, s, "CONFIG", "SET", "key-load-delay", 1000, "loading-process-events-interval-bytes", 1024)
	order(t, s, "CONFIG", "REWRITE")
	s.Kill()
	s.Begin()
	isLoading := func() bool {
		err := s.Client().Ping(context.Background()).Err()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	}
	await(t, "the loading to begin", isLoading)
	return func() {
		if !isLoading() {
			t.Error("it has long loaded")
		}
		order(t, s, "CONFIG", "SET", "key-load-delay", 0)
	}
}

// Every way that Redis can be away: the node goes on within the timeout, and afterwards
// Redis has what was admitted, each once and at its time.
func TestRedisAway(t *testing.T) {
	for name, fault := range redisFaults {
		t.Run(name, func(t *testing.T) { redisAway(t, fault) })
	}
}

func redisAway(t *testing.T, fault redisFault) {
	t.Parallel()
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	line := redistest.Proxy(t, server.Addr)
	n := openPeer(t, line.URL(), policy(t, "day=3/24h"))
	const old = "old@example.com"
	n.send(old, false)
	mend := fault(t, server, line)
	for range 3 {
		n.send(old, true)
	}
	if got := len(n.admitted[old]); got != 3 {
		t.Errorf("%d of 3 were admitted", got)
	}
	for i := range 10 {
		if key := fmt.Sprintf("new%d@example.com", i); !n.send(key, true).Allowed {
			t.Errorf("%s was refused", key)
		}
	}
	if n.slow > timeout+slack {
		t.Errorf("a take took %v", n.slow)
	}
	mend()
	mended := time.Now()
	awaitHealth(t, n.watch)
	t.Logf("the longest take %v, healthy after %v", n.slow.Round(time.Millisecond), time.Since(mended).Round(time.Millisecond))
	n.onRecord()
	if v := n.send(old, false); v.Allowed {
		t.Error("one more than the tiers was admitted")
	}
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

// A Redis that comes back empty has forgotten, and is believed: it gets what was admitted
// meanwhile, and nothing from before, so that those who were mailed may be mailed anew.
func TestRedisComesBackEmpty(t *testing.T) {
	for name, fault := range map[string]redisFault{
		"restarted without a disk": redisFaults["killed"],
		"flushed": func(t *testing.T, s *redistest.Server, line *redistest.FaultyProxy) func() {
			line.Swallow()
			order(t, s, "FLUSHALL")
			return line.Pass
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t)
			line := redistest.Proxy(t, server.Addr)
			n := openPeer(t, line.URL(), policy(t, "day=2/24h"))
			const full, fresh = "full@example.com", "fresh@example.com"
			for range 2 {
				n.send(full, false)
			}
			mend := fault(t, server, line)
			if n.send(full, true).Allowed {
				t.Error("in the outage a mailbox that is full was mailed")
			}
			n.send(fresh, true)
			mend()
			awaitHealth(t, n.watch)
			if got := n.record(full); len(got) != 0 {
				t.Errorf("of before there is %v", got)
			}
			if !n.send(full, false).Allowed || !n.send(full, false).Allowed || n.send(full, false).Allowed {
				t.Error("it was not believed")
			}
			n.admitted[full] = n.admitted[full][2:]
			n.onRecord()
		})
	}
}

// By the timeout that a store has by itself, too: whether Redis is dead or hangs, a node
// goes on within it. Of some attempts the quickest counts, as a busy machine only adds.
func TestGoesOnWithinTheDefault(t *testing.T) {
	const enough = redisstore.DefaultTimeout + redisstore.DefaultTimeout/10
	for _, name := range []string{"killed", "stopped", "cut off"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t, "appendonly yes")
			line := redistest.Proxy(t, server.Addr)
			n := openPeerWith(t, cachetest.Open(t, cache.Memory), redisstore.Options{URL: line.URL()}, policy(t, "day=1000/24h"))
			quickest := time.Hour
			for try := 0; try < 20 && quickest > enough; try++ {
				awaitHealth(t, n.watch)
				mend := redisFaults[name](t, server, line)
				n.slow = 0
				if v, _ := n.take(alice); v.Allowed && v.Degraded {
					quickest = min(quickest, n.slow)
				}
				mend()
			}
			if quickest > enough || name != "killed" && quickest < redisstore.DefaultTimeout/2 {
				t.Errorf("the quickest took %v", quickest)
			}
		})
	}
}

// Three nodes that are cut off admit at most three times the tiers, and when they are back
// no more than none.
func TestThreeNodesAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	var proxies []*redistest.FaultyProxy
	var peers []*peer
	for range 3 {
		proxy := redistest.Proxy(t, server.Addr)
		proxies, peers = append(proxies, proxy), append(peers, openPeer(t, proxy.URL(), policy(t, "day=2/24h")))
	}
	for _, n := range peers { // a node has to have met Redis
		n.take("somebody@example.com")
	}
	for _, proxy := range proxies {
		proxy.Swallow()
	}
	admitted := 0
	for range 4 {
		for _, n := range peers {
			if v, _ := n.take(alice); v.Allowed {
				admitted++
			}
		}
	}
	if admitted != 6 {
		t.Errorf("%d were admitted, want 3 times 2", admitted)
	}
	for _, proxy := range proxies {
		proxy.Pass()
	}
	for _, n := range peers {
		awaitHealth(t, n.watch)
	}
	if got := peers[0].record(alice); len(got) != 6 {
		t.Errorf("on record: %v", got)
	}
	for _, n := range peers {
		if v, _ := n.take(alice); v.Allowed || v.Degraded {
			t.Errorf("together again: %+v", v)
		}
	}
}

// What a node has admitted alone before it was killed is not old to it, however far ahead
// its machine's clock is.
func TestPaysByTheSharedClock(t *testing.T) {
	t.Parallel()
	server, set := redistest.WithClock(t, "appendonly yes", "appendfsync always")
	set(-48 * time.Hour)
	disk, p := cachetest.Open(t, cache.Memory), policy(t, "day=2/24h")
	n := openPeerOn(t, disk, server.URL(), p)
	n.take("somebody@example.com")
	server.Kill()
	_, id := n.take(alice)
	n.end()

	server.Restart()
	n = openPeerOn(t, disk, server.URL(), p)
	awaitHealth(t, n.watch)
	if got := n.record(alice); !slices.Equal(got, []string{id.String()}) {
		t.Errorf("on record is %v, want %v", got, id)
	}
}
