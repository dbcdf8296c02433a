package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
)

const (
	quick   = time.Second // the timeout of these tests: what takes longer on a busy machine is no fault
	callers = 64
)

// A crowd calls again and again, and remembers how each call came out.
type crowd struct {
	store *redisstore.Store
	keys  func(caller int) string

	mu    sync.Mutex
	calls []outcome
}

type outcome struct {
	key         string
	began, took time.Duration // since the crowd began
	err         error
}

// callWhile lets the crowd call for as long as something happens.
func (c *crowd) callWhile(happens func()) []outcome {
	began := time.Now()
	var over atomic.Bool
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for !over.Load() {
				c.call(began, c.keys(i))
			}
		})
	}
	happens()
	over.Store(true)
	all.Wait()
	return c.calls
}

func (c *crowd) call(began time.Time, key string) {
	o := outcome{key: key, began: time.Since(began)}
	call, err := c.store.Begin(context.Background(), c.store.Prefix()+key)
	if err == nil {
		_, err = call.Ask(count)
		call.End()
	}
	o.took, o.err = time.Since(began)-o.began, err
	c.mu.Lock()
	c.calls = append(c.calls, o)
	c.mu.Unlock()
	time.Sleep(2 * time.Millisecond) // as a caller has something else to do
}

// slow are the calls that cost the timeout, or nearly, of those that met with a fault which
// lasted from and until then: on a busy machine some do in the calm.
func slow(calls []outcome, from, until time.Duration) (n int) {
	for _, o := range calls {
		if o.err != nil && o.took > quick*8/10 && o.began < until && o.began+o.took > from {
			n++
		}
	}
	return n
}

// spared are the calls that failed at once, as the server was known to be away.
func spared(calls []outcome) (n int) {
	for _, o := range calls {
		if errors.Is(o.err, redisstore.ErrAway) && redisstore.Undone(o.err) {
			n++
		}
	}
	return n
}

// lastError is when a call that failed came to its end.
func lastError(calls []outcome) (at time.Duration) {
	for _, o := range calls {
		if o.err != nil {
			at = max(at, o.began+o.took)
		}
	}
	return at
}

func percentile(calls []outcome, p int) time.Duration {
	took := make([]time.Duration, len(calls))
	for i, o := range calls {
		took[i] = o.took
	}
	slices.Sort(took)
	return took[len(took)*p/100]
}

func settle(d time.Duration) { <-time.After(d) }

// served is when all are served again after a repair: the probe that is under way has a timeout,
// then there is the pause after it, and the second between the library's own. A busy machine takes
// a few more.
const served = quick + 7*time.Second

// after are the calls that began after a moment.
func after(calls []outcome, moment time.Duration) []outcome {
	return slices.DeleteFunc(slices.Clone(calls), func(o outcome) bool { return o.began <= moment })
}

// However a server goes away, no call waits for it once that is known. When it is back all are
// served again.
func TestCalls_ServerAway_FailAtOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		begin func(*redistest.Server, *redistest.FaultyProxy)
		end   func(*redistest.Server, *redistest.FaultyProxy)
	}{
		"hangs":    {func(s *redistest.Server, _ *redistest.FaultyProxy) { s.Pause() }, func(s *redistest.Server, _ *redistest.FaultyProxy) { s.Resume() }},
		"crashed":  {func(s *redistest.Server, _ *redistest.FaultyProxy) { s.Kill() }, func(s *redistest.Server, _ *redistest.FaultyProxy) { s.Restart() }},
		"silent":   {func(_ *redistest.Server, p *redistest.FaultyProxy) { p.Swallow() }, func(_ *redistest.Server, p *redistest.FaultyProxy) { p.Pass() }},
		"refusing": {func(_ *redistest.Server, p *redistest.FaultyProxy) { p.Refuse() }, func(_ *redistest.Server, p *redistest.FaultyProxy) { p.Pass() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t)
			proxy := redistest.Proxy(t, server.Addr)
			store := open(t, redisstore.Options{URL: proxy.URL(), Timeout: quick})
			c := &crowd{store: store, keys: func(int) string { return "key" }}
			var known, repaired time.Duration
			began := time.Now()
			calls := c.callWhile(func() {
				settle(500 * time.Millisecond)
				fault.begin(server, proxy)
				servertest.Eventually(t, "the dead server to be known to be away", func() bool { return store.Away() == 1 })
				known = time.Since(began)
				settle(time.Second)
				fault.end(server, proxy)
				repaired = time.Since(began)
				settle(served + time.Second)
			})
			t.Logf("%d calls, %d at full cost, %d not made; the last failed %v after the repair", len(calls), slow(after(calls, known), known, repaired), spared(calls), lastError(calls)-repaired)
			if n := slow(after(calls, known), known, repaired); n > callers/8 {
				t.Errorf("%d calls cost the timeout when it was known", n)
			}
			if spared(calls) == 0 {
				t.Error("no call was told that it is away")
			}
			if late := lastError(calls) - repaired; late > served {
				t.Errorf("a call failed %v after the repair", late)
			}
			if n := store.Away(); n != 0 {
				t.Errorf("%d servers are away after the repair", n)
			}
		})
	}
}

// In a Cluster a master that hangs is away alone: calls to the others are as quick as ever.
func TestOneMasterHangs(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	store := open(t, redisstore.Options{URL: servers.URL(), Timeout: quick})
	keys := make([]string, 300)
	dead, of := servers.Masters[0], map[string]*redistest.Server{}
	replica := servers.ReplicaOf(dead)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
		of[keys[i]] = servers.MasterOf(store.Prefix() + keys[i])
	}
	var mu sync.Mutex
	next := 0
	c := &crowd{store: store, keys: func(int) string {
		mu.Lock()
		defer mu.Unlock()
		next++
		return keys[next%len(keys)]
	}}
	var paused, promoted time.Duration
	began := time.Now()
	calls := c.callWhile(func() {
		settle(500 * time.Millisecond)
		paused = time.Since(began)
		dead.Pause()
		servers.AwaitPromotion(replica)
		promoted = time.Since(began)
		settle(served + time.Second)
	})
	dead.Resume()
	var others, its, before []outcome
	for _, o := range calls {
		switch {
		case o.began+o.took < paused:
			before = append(before, o)
		case of[o.key] == dead:
			its = append(its, o)
		default:
			others = append(others, o)
		}
	}
	t.Logf("%d calls before, p99 %v", len(before), percentile(before, 99))
	t.Logf("%d calls to the others, p50 %v, p99 %v, %d at full cost, last error %v; %d to the dead one, %d at full cost, %d not made, last error %v after the promotion, which took %v", len(others),
		percentile(others, 50), percentile(others, 99), slow(others, paused, promoted), lastError(others)-paused, len(its), slow(its, paused, promoted), spared(its), lastError(its)-promoted, promoted-paused)
	if p99 := percentile(others, 99); p99 > percentile(before, 99)+quick/4 {
		t.Errorf("calls to the others took %v, 99 of 100", p99)
	}
	if late := lastError(its) - promoted; late > served {
		t.Errorf("its replica was not found for %v", late)
	}
}

// When Sentinel names another master, it is found without a restart, and the dead one cost
// the first wave its timeout.
func TestTheNextMasterIsFound(t *testing.T) {
	t.Parallel()
	servers := redistest.Sentinel(t)
	store := open(t, redisstore.Options{URL: servers.URL(), Timeout: quick})
	c := &crowd{store: store, keys: func(int) string { return "key" }}
	var killed, promoted time.Duration
	began := time.Now()
	calls := c.callWhile(func() {
		settle(300 * time.Millisecond)
		killed = time.Since(began)
		servers.Failover()
		promoted = time.Since(began)
		settle(served + time.Second)
	})
	t.Logf("promoted after %v; %d calls, %d at full cost, %d not made; the last failed %v after the promotion",
		promoted-killed, len(calls), slow(calls, killed, promoted), spared(calls), lastError(calls)-promoted)
	if n := slow(calls, killed, promoted); n > callers+callers/8 {
		t.Errorf("%d calls cost the timeout", n)
	}
	if late := lastError(calls) - promoted; late > served {
		t.Errorf("a call failed %v after the promotion", late)
	}
}
