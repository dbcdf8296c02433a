package outage_test

import (
	"context"
	"errors"
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
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// An ordeal is three nodes with callers, and what they were told, while something happens to
// Redis.
type ordeal struct {
	t     *testing.T
	peers []*peer
	keys  int  // how many there are
	stays bool // nothing is given back

	mu       sync.Mutex
	admitted map[string]map[string]throttle.Verdict // by key and send, and not given back
	alone    int
	refused  int // for a reply that was late, and given back
	errs     []error
}

func openOrdeal(t *testing.T, urls []string) *ordeal {
	o := &ordeal{t: t, keys: 8, admitted: map[string]map[string]throttle.Verdict{}}
	for _, url := range urls {
		n := openPeerOn(t, cachetest.Open(t, cache.Memory), url, throttletest.Policy(t, ordealTiers))
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
	key, id := fmt.Sprintf("%d@example.com", random.IntN(o.keys)), throttle.NewID()
	v, err := n.Take(context.Background(), key, id)
	back, refused := false, errors.Is(err, throttle.ErrUnavailable)
	if refused { // as the service does for what may have been charged
		_, err = n.Release(context.Background(), key, id)
	}
	if err == nil && v.Allowed && !o.stays && random.IntN(4) == 0 {
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
	if refused {
		o.refused++
	}
	if v.Allowed && v.Degraded {
		o.alone++
	}
	if v.Allowed && !back {
		o.note(key, id, v)
	}
	time.Sleep(time.Millisecond)
}

func (o *ordeal) note(key string, id throttle.ID, v throttle.Verdict) {
	if o.admitted[key] == nil {
		o.admitted[key] = map[string]throttle.Verdict{}
	}
	o.admitted[key][id.String()] = v
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
	o.t.Logf("%d sends, %d admitted alone, %d refused; healthy after %v", sends, o.alone, o.refused, time.Since(mended).Round(time.Millisecond))
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
		for v := range throttle.Replay(throttletest.Policy(o.t, seenTiers), its) {
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

// inTurns has something happen and end again, a number of times.
func inTurns(times int, begin func(), lasts time.Duration, end func()) {
	for range times {
		begin()
		sleep(lasts)
		end()
		sleep(200 * time.Millisecond)
	}
}

// onLines changes what becomes of the lines to Redis a number of times, and lets all pass in
// the end.
func onLines(lines []*redistest.FaultyProxy, times int, each time.Duration, change func(i int, line *redistest.FaultyProxy)) {
	for i := range times {
		for j, line := range lines {
			change(i+j, line)
		}
		sleep(each)
	}
	for _, line := range lines {
		line.Pass()
	}
}

// ordeals are what happens to a Redis and to three lines to it.
var ordeals = map[string]func(s *redistest.Server, lines []*redistest.FaultyProxy){
	"flapping": func(_ *redistest.Server, lines []*redistest.FaultyProxy) {
		onLines(lines, 15, 300*time.Millisecond, func(i int, line *redistest.FaultyProxy) {
			[]func(){line.Pass, line.Swallow, line.Pass, line.Refuse}[i%4]()
		})
	},
	"slow": func(_ *redistest.Server, lines []*redistest.FaultyProxy) {
		onLines(lines, 20, 200*time.Millisecond, func(i int, line *redistest.FaultyProxy) {
			line.Delay(timeout*8/10 + time.Duration(i%10)*timeout*4/100)
		})
	},
	"replies cut": func(_ *redistest.Server, lines []*redistest.FaultyProxy) {
		onLines(lines, 15, 200*time.Millisecond, func(i int, line *redistest.FaultyProxy) {
			if i%2 == 0 {
				line.CutReplies(20, "evalsha")
			} else {
				line.DropReplies(20, "evalsha")
			}
		})
	},
	"killed and restarted": func(s *redistest.Server, _ []*redistest.FaultyProxy) {
		inTurns(4, s.Kill, 700*time.Millisecond, s.Restart)
	},
	"paused": func(s *redistest.Server, _ []*redistest.FaultyProxy) {
		inTurns(3, s.Pause, 1300*time.Millisecond, s.Resume)
	},
	"out of memory now and then": func(s *redistest.Server, _ []*redistest.FaultyProxy) {
		allow := func(bytes string) func() {
			return func() { s.Client().ConfigSet(context.Background(), "maxmemory", bytes) }
		}
		inTurns(8, allow("1"), 200*time.Millisecond, allow("0"))
	},
}

// Whatever happens to Redis, and however often: every send is answered or given back, no node
// admits more than the tiers, and when all is well Redis has what was admitted and not given back,
// each once.
func TestOrdeals(t *testing.T) {
	for name, happens := range ordeals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t, "appendonly yes", "appendfsync always")
			var urls []string
			var lines []*redistest.FaultyProxy
			for range 3 {
				line := redistest.Proxy(t, server.Addr)
				lines, urls = append(lines, line), append(urls, line.URL())
			}
			o := openOrdeal(t, urls)
			o.callWhile(func() { happens(server, lines) })
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
	hang := func(pairs int, lasts time.Duration) {
		some := append(servers.Masters[:pairs:pairs], servers.Replicas[:pairs]...)
		for _, s := range some {
			s.Pause()
		}
		sleep(lasts)
		for _, s := range some {
			s.Resume()
		}
		servers.AwaitReady()
	}
	o.callWhile(func() {
		sleep(time.Second)
		hang(1, 4*time.Second) // CLUSTERDOWN for all after 2 s
		hang(2, 3*time.Second)
	})
	o.judge()
}
