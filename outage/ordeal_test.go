package outage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
)

// An ordeal is three nodes with callers, and what they were told, while something happens to
// Redis.
type ordeal struct {
	t     *testing.T
	peers []*peer

	mu       sync.Mutex
	admitted map[string]map[string]bool // by key, and not given back
	alone    int
	errs     []error
}

func openOrdeal(t *testing.T, urls []string) *ordeal {
	o := &ordeal{t: t, admitted: map[string]map[string]bool{}}
	for _, url := range urls {
		n := openPeerOn(t, cachetest.Open(t, cache.Memory), url, policy(t, ordealTiers))
		n.take("somebody@example.com")
		o.peers = append(o.peers, n)
	}
	return o
}

// callWhile has callers at each node for as long as something happens.
func (o *ordeal) callWhile(happens func()) {
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i, n := range o.peers {
		for j := range 4 {
			callers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for {
					select {
					case <-stop:
						return
					default:
						o.call(n, random)
					}
				}
			})
		}
	}
	happens()
	close(stop)
	callers.Wait()
}

func (o *ordeal) call(n *peer, random *rand.Rand) {
	key, id := fmt.Sprintf("%d@example.com", random.IntN(8)), throttle.NewID()
	v, err := n.Take(context.Background(), key, id)
	back := false
	if err == nil && v.Allowed && random.IntN(4) == 0 {
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		if back, err = n.Release(context.Background(), key, id); err == nil && !back {
			err = fmt.Errorf("%s of %s was not there to be given back", id, key)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	if v.Allowed && v.Degraded {
		o.alone++
	}
	if v.Allowed && !back {
		if o.admitted[key] == nil {
			o.admitted[key] = map[string]bool{}
		}
		o.admitted[key][id.String()] = true
	}
	time.Sleep(time.Millisecond)
}

// judge waits until all is well, and compares what Redis has with what the callers were told.
func (o *ordeal) judge() {
	o.t.Helper()
	mended := time.Now()
	for _, n := range o.peers {
		awaitHealth(o.t, n.watch)
	}
	sends := 0
	for key, ids := range o.admitted {
		var want []string
		for id := range ids {
			want = append(want, id)
		}
		slices.Sort(want)
		sends += len(want)
		if got := o.peers[0].record(key); !slices.Equal(got, want) {
			o.t.Errorf("%s: on record is\n%v, want\n%v", key, got, want)
		}
		o.sameTimes(key)
	}
	o.t.Logf("%d sends, %d admitted alone, %d errors; healthy after %v", sends, o.alone, len(o.errs), time.Since(mended).Round(time.Millisecond))
	if len(o.errs) > 0 {
		o.t.Errorf("%d errors, such as %v", len(o.errs), o.errs[0])
	}
}

// sameTimes fails unless each node has its sends at the times that Redis has them at, as far
// as it could learn them.
func (o *ordeal) sameTimes(key string) {
	o.t.Helper()
	there, err := o.peers[0].shared.History(context.Background(), key)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, n := range o.peers {
		own, err := n.own.History(context.Background(), key)
		if err != nil {
			o.t.Fatal(err)
		}
		for _, send := range own {
			if i := there.Find(send.ID); i >= 0 && max(send.At-there[i].At, there[i].At-send.At) > 3*timeout.Milliseconds() {
				o.t.Errorf("%s: Redis has %v, the node %v", key, there[i], send)
			}
		}
		var its throttle.History
		for _, send := range there {
			if own.Find(send.ID) >= 0 {
				its = append(its, send)
			}
		}
		for v := range throttle.Replay(policy(o.t, seenTiers), its) {
			o.t.Errorf("a node has admitted more than %s: %v, which it has at %v", v.Limit, its, own)
		}
	}
}

// seenTiers are what is held of ordealTiers by Redis's times. Where a reply was lost, Redis
// has decided earlier or later than the node did alone, by up to the timeout and what a busy
// machine adds.
const (
	ordealTiers = "short=2/4s,day=30/24h"
	seenTiers   = "short=2/2s,day=30/24h"
)

func sleep(d time.Duration) { <-time.After(d) }

// Whatever happens to Redis, and however often: every send is answered, no node admits more
// than the tiers, and when all is well Redis has what was admitted and not given back, each
// once.
func TestOrdeals(t *testing.T) {
	passAll := func(proxies []*redistest.FaultyProxy) {
		for _, p := range proxies {
			p.Pass()
		}
	}
	for name, happens := range map[string]func(s *redistest.Server, p []*redistest.FaultyProxy){
		"flapping": func(s *redistest.Server, p []*redistest.FaultyProxy) {
			for i := range 15 {
				for j := range p {
					switch (i + j) % 4 {
					case 0, 2:
						p[j].Pass()
					case 1:
						p[j].Swallow()
					case 3:
						p[j].Refuse()
					}
				}
				sleep(300 * time.Millisecond)
			}
			passAll(p)
		},
		"slow": func(s *redistest.Server, p []*redistest.FaultyProxy) {
			for i := range 20 {
				for j := range p {
					p[j].Delay(timeout*8/10 + time.Duration(i%10)*timeout*4/100)
				}
				sleep(200 * time.Millisecond)
			}
			passAll(p)
		},
		"replies cut": func(s *redistest.Server, p []*redistest.FaultyProxy) {
			for i := range 15 {
				for j := range p {
					if (i+j)%2 == 0 {
						p[j].CutReplies(20, "evalsha")
					} else {
						p[j].DropReplies(20, "evalsha")
					}
				}
				sleep(200 * time.Millisecond)
			}
			passAll(p)
		},
		"killed and restarted": func(s *redistest.Server, p []*redistest.FaultyProxy) {
			for range 4 {
				s.Kill()
				sleep(700 * time.Millisecond)
				s.Restart()
				sleep(200 * time.Millisecond)
			}
		},
		"paused": func(s *redistest.Server, p []*redistest.FaultyProxy) {
			for range 3 {
				s.Pause()
				sleep(1700 * time.Millisecond)
				s.Resume()
				sleep(200 * time.Millisecond)
			}
		},
		"out of memory now and then": func(s *redistest.Server, p []*redistest.FaultyProxy) {
			for range 10 {
				s.Client().ConfigSet(context.Background(), "maxmemory", "1")
				sleep(200 * time.Millisecond)
				s.Client().ConfigSet(context.Background(), "maxmemory", "0")
				sleep(100 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t, "appendonly yes", "appendfsync always")
			var urls []string
			var proxies []*redistest.FaultyProxy
			for range 3 {
				p := redistest.Proxy(t, server.Addr)
				proxies, urls = append(proxies, p), append(urls, p.URL())
			}
			o := openOrdeal(t, urls)
			o.callWhile(func() { happens(server, proxies) })
			o.judge()
		})
	}
}

// In a Cluster a part of the slots hangs, until Redis calls the whole of it down; and then
// most of them.
func TestOrdealOfACluster(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	o := openOrdeal(t, []string{servers.URL(), servers.URL(), servers.URL()})
	o.callWhile(func() {
		sleep(time.Second)
		for _, s := range []*redistest.Server{servers.Masters[0], servers.Replicas[0]} { // CLUSTERDOWN for all after 2 s
			s.Pause()
		}
		sleep(4 * time.Second)
		servers.Masters[0].Resume()
		servers.Replicas[0].Resume()
		servers.AwaitReady()
		for i := range 2 {
			servers.Masters[i].Pause()
			servers.Replicas[i].Pause()
		}
		sleep(3 * time.Second)
		for i := range 2 {
			servers.Masters[i].Resume()
			servers.Replicas[i].Resume()
		}
		servers.AwaitReady()
	})
	o.judge()
}
