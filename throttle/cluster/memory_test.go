package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// remembering is a limiter of a node of its own, and the node's memory.
func remembering(t testing.TB, url string, a throttle.Algorithm) (*throttle.Limiter, *cluster.Memory) {
	t.Helper()
	m := cluster.NewMemory(1 << 20)
	return m.Limiter(limiter(t, open(t, redisx.Options{URL: url, Timeout: patient}), a)), m
}

// awaitMemory peeks until a refusal comes from memory, and returns it.
func awaitMemory(t testing.TB, l *throttle.Limiter, m *cluster.Memory, key string) (v throttle.Verdict) {
	t.Helper()
	servertest.Eventually(t, "a refusal from memory", func() bool {
		before := m.Refusals()
		v = must.Get(l.Peek(ctx, key))(t)
		return m.Refusals() > before
	})
	return v
}

// What is answered from memory is what Redis answers.
func TestLimiter_WithMemory_KeepsTheContract(t *testing.T) {
	t.Parallel()
	client, server := alone(t)
	set, m := server.WithStillClock(), cluster.NewMemory(1<<20)
	opened := map[string]*throttle.Limiter{}
	throttletest.Run(t, func(t testing.TB, name string, a throttle.Algorithm, now func() int64) *throttle.Limiter {
		cluster.ByClock(m, now)
		if l := opened[name+a.Form()]; l != nil {
			return l.With(a)
		}
		opened[name+a.Form()] = m.Limiter(throttle.New(a, timed{must.Get(cluster.New(client, name, a))(t).Home, now, []func(int64){set}}))
		return opened[name+a.Form()]
	}, throttletest.Length(1000, 100_000))
	t.Logf("%d refusals came from memory", m.Refusals())
	if m.Refusals() == 0 {
		t.Error("no refusal came from memory")
	}
}

// Beside a node that remembers, one asks Redis each time, and another changes the records.
func TestPeek_FromMemory_AsRedisAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	algorithms := throttletest.Counters(t, "hour=3/1h")
	algorithms["tiers"] = throttletest.Policy(t, "hour=3/1h,day=5/24h")
	type nodes struct {
		l, other, plain *throttle.Limiter
		m               *cluster.Memory
	}
	all := map[string]nodes{}
	for name, a := range algorithms {
		l, m := remembering(t, server.URL(), a)
		other, _ := remembering(t, server.URL(), a)
		all[name] = nodes{l, other, limiter(t, server.Client(), a), m}
	}
	for i := range 4 {
		for name, n := range all {
			var newest throttle.Admission
			for v := take(t, n.plain, name); v.Allowed; v = take(t, n.plain, name) {
				newest = v.Admission
			}
			got := awaitMemory(t, n.l, n.m, name)
			want := must.Get(n.plain.Peek(ctx, name))(t)
			if got.Allowed || got.RetryAt != want.RetryAt || got.Limit != want.Limit || got.Sent != want.Sent || got.Newest != want.Newest {
				t.Errorf("%s: from memory %+v, from Redis %+v", name, got, want)
			}
			if late := want.Now - got.Now; late < 0 || late > 5000 || got.Wait != want.Wait+late {
				t.Errorf("%s: from memory at %d a wait of %d, from Redis at %d of %d", name, got.Now, got.Wait, want.Now, want.Wait)
			}
			if !slices.EqualFunc(got.Tiers, want.Tiers, func(a, b throttle.TierState) bool { return a.Tier == b.Tier && a.Remaining == b.Remaining }) {
				t.Errorf("%s: from memory %+v, from Redis %+v", name, got.Tiers, want.Tiers)
			}
			if i%2 == 0 {
				must.Get(n.other.Release(ctx, name, newest))(t)
			} else {
				must.Get(n.other.Reset(ctx, name))(t)
			}
		}
		for name, n := range all {
			servertest.Eventually(t, name+" to be noticed", func() bool { return must.Get(n.l.Peek(ctx, name))(t).Allowed })
		}
	}
}

// A key that is refused all the time costs Redis a command a second.
func TestTake_Flood_AsksOnceASecond(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	l, m := remembering(t, proxy.URL(), throttle.DefaultPolicy())
	take(t, l, mailbox)
	awaitMemory(t, l, m, mailbox)
	asked, began, calls := proxy.Sent("evalsha"), time.Now(), 0
	for ; time.Since(began) < 2*time.Second; calls++ {
		if take(t, l, mailbox).Allowed {
			t.Fatal("admitted")
		}
	}
	if asked = proxy.Sent("evalsha") - asked; asked*50 > calls {
		t.Errorf("%d of %d refusals asked Redis", asked, calls)
	}
}

// slow is a home whose answers take a time.
type slow struct {
	throttle.Home
	pass func()
}

func (h slow) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	defer h.pass()
	return h.Home.Do(ctx, key, op)
}

// What is remembered is as old as the question, however late the answer was: it is used for a second, and while no step can
// be admitted.
func TestTake_SlowAnswer_AsOldAsTheQuestion(t *testing.T) {
	t.Parallel()
	client, server := alone(t)
	server.WithStillClock()(1_795_176_000_000)
	for _, test := range []struct {
		window string
		at     int64 // milliseconds after the question
		asked  uint64
	}{{"1h", 1000, 1}, {"1h", 1001, 2}, {"950ms", 940, 1}, {"950ms", 950, 2}} {
		plain := limiter(t, client, throttletest.Policy(t, "only=1/"+test.window))
		now, m, key := int64(0), cluster.NewMemory(1<<20), fmt.Sprint(test.window, test.at)
		cluster.ByClock(m, func() int64 { return now })
		l := m.Limiter(throttle.New(plain.Algorithm, slow{plain.Home, func() { now += 900 }}))
		take(t, plain, key)
		take(t, l, key)
		now = test.at
		take(t, l, key)
		if got := m.Asked(); got != test.asked {
			t.Errorf("of %s after %d ms: Redis was asked %d times, want %d", test.window, test.at, got, test.asked)
		}
	}
}

// Of many callers that meet the end of a refusal, one asks Redis.
func TestTake_RefusalEnds_OneAsks(t *testing.T) {
	t.Parallel()
	l, m := remembering(t, redistest.Alone(t).URL(), throttletest.Policy(t, "short=1/400ms"))
	take(t, l, mailbox)
	awaitMemory(t, l, m, mailbox)
	const callers, windows = 200, 5
	var admitted atomic.Int64
	var all sync.WaitGroup
	before := m.Asked()
	for range callers {
		all.Go(func() {
			for admitted.Load() < windows {
				v := must.Get(l.Take(ctx, mailbox))(t)
				if v.Allowed {
					admitted.Add(1)
				}
				<-time.After(v.RetryAfter()) // all come back at the same moment
			}
		})
	}
	all.Wait()
	if asked := m.Asked() - before; asked > callers*windows/4 {
		t.Errorf("%d callers asked Redis %d times in %d windows", callers, asked, windows)
	}
}

// What another node resets or refunds is seen within a second; a longer wait for the test's own steps is not counted.
func TestReset_AtAnotherNode_SeenWithinASecond(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	l, m := remembering(t, server.URL(), throttle.DefaultPolicy())
	other, _ := remembering(t, server.URL(), throttle.DefaultPolicy())
	for i := range 4 {
		key := fmt.Sprint("key", i)
		v := take(t, other, key)
		awaitMemory(t, l, m, key)
		if i%2 == 0 {
			must.Get(other.Reset(ctx, key))(t)
		} else {
			must.Get(other.Release(ctx, key, v.Admission))(t)
		}
		for done := time.Now(); ; {
			asked := time.Now()
			if must.Get(l.Peek(ctx, key))(t).Allowed {
				break
			}
			if late := asked.Sub(done); late > time.Second {
				t.Fatalf("refused %v later", late)
			}
		}
	}
}

// A reset, a release and a record through a node are in force there when they return, whatever other callers of the
// key have asked before.
func TestRelease_AmongCallers_InForceAtOnce(t *testing.T) {
	t.Parallel()
	l, m := remembering(t, redistest.Alone(t).URL(), throttletest.Policy(t, "hour=1/1h"))
	var stop atomic.Bool
	var looks sync.WaitGroup
	defer looks.Wait()
	defer stop.Store(true)
	for range 8 {
		looks.Go(func() {
			for !stop.Load() {
				must.Get(l.Peek(ctx, mailbox))(t)
			}
		})
	}
	for i := range 200 {
		v := take(t, l, mailbox)
		if !v.Allowed {
			t.Fatalf("round %d: refused after what went before was returned", i)
		}
		if v := must.Get(l.Peek(ctx, mailbox))(t); v.Allowed {
			t.Fatalf("round %d: admitted", i)
		}
		if i%2 == 0 {
			must.Get(l.Reset(ctx, mailbox))(t)
		} else {
			must.Get(l.Release(ctx, mailbox, v.Admission))(t)
		}
	}
	if m.Refusals() == 0 {
		t.Error("no refusal came from memory")
	}
}

// A memory that is full asks, and forgets nothing that was reset.
func TestTake_MemoryIsFull_Asks(t *testing.T) {
	t.Parallel()
	client, _ := alone(t)
	m := cluster.NewMemory(1 << 16)
	l := m.Limiter(limiter(t, client, throttle.DefaultPolicy()))
	for i := range 1000 {
		take(t, l, fmt.Sprint("key", i))
	}
	for range 2 {
		for i := range 1000 {
			if take(t, l, fmt.Sprint("key", i)).Allowed {
				t.Fatal("admitted")
			}
		}
	}
	if n := m.Refusals(); n > 500 {
		t.Errorf("%d refusals came from a memory of 64 KiB", n)
	}
}

// What Redis has lost is not refused for longer than a second, as after a failover.
func TestPeek_RedisKilledAndEmpty_Forgotten(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	l, m := remembering(t, server.URL(), throttle.DefaultPolicy())
	take(t, l, mailbox)
	awaitMemory(t, l, m, mailbox)
	server.Kill()
	killed := time.Now()
	server.Restart()
	servertest.Eventually(t, "the key to be forgotten", func() bool {
		v, err := l.Peek(ctx, mailbox)
		if err == nil && !v.Allowed && time.Since(killed) > 1100*time.Millisecond {
			t.Fatal("refused after more than a second")
		}
		return err == nil && v.Allowed
	})
}
