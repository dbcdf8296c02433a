package outage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Every way that Redis can be away: the node goes on at once where Redis refuses, and where it
// hangs as soon as that is known. Afterwards Redis has what was admitted, each once and at its time.
func TestRedisAway(t *testing.T) {
	for name, fault := range redisFaults {
		hangs := name == "stopped" || name == "cut off" || name == "replies lost"
		t.Run(name, func(t *testing.T) { redisAway(t, fault, hangs) })
	}
}

func redisAway(t *testing.T, fault redisFault, hangs bool) {
	t.Parallel()
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	line := redistest.Proxy(t, server.Addr)
	n := openPeer(t, line.URL(), throttletest.Policy(t, "day=3/24h"))
	const old = "old@example.com"
	n.send(old, false)
	mend := fault(t, server, line)
	if hangs {
		n.awaitAlone()
	}
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
			n := openPeer(t, line.URL(), throttletest.Policy(t, "day=2/24h"))
			const full, fresh = "full@example.com", "fresh@example.com"
			for range 2 {
				n.send(full, false)
			}
			mend := fault(t, server, line)
			n.awaitAlone()
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

// A node with the default timeout goes on alone at once where Redis refuses, and about a second
// after the first request where it hangs; until then requests are refused. Of some attempts the
// quickest counts, as a busy machine only adds.
func TestTake_DefaultTimeout_GoesOnWithinASecond(t *testing.T) {
	for name, within := range map[string][2]time.Duration{
		"killed":  {0, 100 * time.Millisecond},
		"stopped": {750 * time.Millisecond, 1250 * time.Millisecond},
		"cut off": {750 * time.Millisecond, 1250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t, "appendonly yes")
			line := redistest.Proxy(t, server.Addr)
			n := openPeerWith(t, cachetest.Open(t, cache.Memory), redisstore.Options{URL: line.URL()}, throttletest.Policy(t, "day=1000/24h"))
			quickest := time.Hour
			for try := 0; try < 20 && quickest > within[1]; try++ {
				awaitHealth(t, n.watch)
				n.take("somebody@example.com")
				mend := redisFaults[name](t, server, line)
				began := time.Now()
				n.awaitAlone()
				quickest = min(quickest, time.Since(began))
				mend()
			}
			t.Logf("%s: alone after %v", name, quickest.Round(time.Millisecond))
			if quickest < within[0] || quickest > within[1] {
				t.Errorf("alone after %v", quickest)
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
		proxies, peers = append(proxies, proxy), append(peers, openPeer(t, proxy.URL(), throttletest.Policy(t, "day=2/24h")))
	}
	for _, n := range peers { // a node has to have met Redis
		n.take("somebody@example.com")
	}
	for _, proxy := range proxies {
		proxy.Swallow()
	}
	for _, n := range peers {
		n.awaitAlone()
		for i := range 4 {
			if v, _ := n.take(alice); v.Allowed != (i < 2) {
				t.Errorf("a node alone, number %d: %+v", i, v)
			}
		}
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
	disk, p := cachetest.Open(t, cache.Memory), throttletest.Policy(t, "day=2/24h")
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
