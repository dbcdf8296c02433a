package cluster_test

import (
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
	client := open(t, redisx.Options{URL: url, Timeout: patient})
	m := must.Get(cluster.NewMemory(client, "test", 1<<20))(t)
	t.Cleanup(m.Close)
	return must.Get(cluster.NewWithMemory(client, "test", a, m))(t), m
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
	set, m := server.WithStillClock(), must.Get(cluster.NewMemory(client, "test", 1<<20))(t)
	t.Cleanup(m.Close)
	throttletest.Run(t, func(t testing.TB, name string, a throttle.Algorithm, now func() int64) *throttle.Limiter {
		l := must.Get(cluster.NewWithMemory(client, name, a, m))(t)
		cluster.ByClock(l, now)
		return throttle.New(a, timed{l.Home, now, []func(int64){set}})
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
	delete(algorithms, "leaky bucket")
	algorithms["tiers"] = throttletest.Policy(t, "hour=3/1h,day=5/24h")
	for name, a := range algorithms {
		l, m := remembering(t, server.URL(), a)
		other, _ := remembering(t, server.URL(), a)
		plain := limiter(t, server.Client(), a)
		for i := range 8 {
			var newest throttle.Admission
			for v := take(t, plain, name); v.Allowed; v = take(t, plain, name) {
				newest = v.Admission
			}
			got := awaitMemory(t, l, m, name)
			want := must.Get(plain.Peek(ctx, name))(t)
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
				must.Get(other.Release(ctx, name, newest))(t)
			} else {
				must.Get(other.Reset(ctx, name))(t)
			}
			servertest.Eventually(t, "it to be noticed", func() bool { return must.Get(l.Peek(ctx, name))(t).Allowed })
		}
	}
}

// A key that is refused all the time costs Redis a command a second, and some where heartbeats are late.
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

// refusedAfter has a node forget keys that others reset or refund, and returns how long it took at most.
func refusedAfter(t *testing.T, keys int, url string, other *throttle.Limiter) (longest time.Duration) {
	t.Helper()
	l, m := remembering(t, url, throttle.DefaultPolicy())
	for i := range keys {
		key := fmt.Sprint("key", i)
		v := take(t, other, key)
		awaitMemory(t, l, m, key)
		if i%2 == 0 {
			must.Get(other.Reset(ctx, key))(t)
		} else {
			must.Get(other.Release(ctx, key, v.Admission))(t)
		}
		began := time.Now()
		for !must.Get(l.Peek(ctx, key))(t).Allowed {
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("forgotten after %v at the latest", longest)
	return longest
}

// Long before its second is over, a state is forgotten where the key was announced.
func TestReset_AtAnotherNode_Forgotten(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	other, _ := remembering(t, server.URL(), throttle.DefaultPolicy())
	if longest := refusedAfter(t, 20, server.URL(), other); longest > 500*time.Millisecond {
		t.Errorf("forgotten after %v", longest)
	}
}

// Of an announcement that is lost, the second that a state is used for is the bound. Heartbeats
// arrive.
func TestReset_AnnouncementLost_ForgottenAfterASecond(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	other, _ := remembering(t, server.URL(), throttle.DefaultPolicy())
	proxy.DropMessages("tiers:{")
	if longest := refusedAfter(t, 2, proxy.URL(), other); longest > 1500*time.Millisecond {
		t.Errorf("forgotten after %v", longest)
	}
	if proxy.Lost() == 0 {
		t.Error("no announcement was lost")
	}
}

// While the channel is silent, nothing is answered from memory.
func TestTake_ChannelSilent_Asks(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	l, m := remembering(t, proxy.URL(), throttle.DefaultPolicy())
	take(t, l, mailbox)
	awaitMemory(t, l, m, mailbox)
	proxy.DropMessages(":changed")
	servertest.Eventually(t, "each step to ask", func() bool {
		before := m.Refusals()
		for range 10 {
			take(t, l, mailbox)
		}
		return m.Refusals() == before
	})
	proxy.Pass()
	awaitMemory(t, l, m, mailbox)
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

// After a change of the limits nothing is answered by what was kept before.
func TestForget_KnownKey_AsksAgain(t *testing.T) {
	t.Parallel()
	l, m := remembering(t, redistest.Alone(t).URL(), throttle.DefaultPolicy())
	take(t, l, mailbox)
	awaitMemory(t, l, m, mailbox)
	m.Forget()
	before := m.Asked()
	if take(t, l, mailbox); m.Asked() != before+1 {
		t.Errorf("Redis was asked %d times", m.Asked()-before)
	}
}

// Where a node may not use the channel, nothing is answered from memory, and steps are taken all the same.
func TestTake_NoRightToTheChannel_AlwaysAsks(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	must.OK(t, server.Client().Do(ctx, "ACL", "SETUSER", "node", "on", ">secret", "~*", "+@all", "resetchannels").Err())
	l, m := remembering(t, "redis://node:secret@"+server.Addr+"/0", throttle.DefaultPolicy())
	v := take(t, l, mailbox)
	for began := time.Now(); time.Since(began) < 500*time.Millisecond; {
		take(t, l, mailbox)
	}
	if m.Refusals() != 0 {
		t.Errorf("%d refusals came from memory", m.Refusals())
	}
	if released, err := l.Release(ctx, mailbox, v.Admission); !released || err != nil {
		t.Errorf("released %v, %v", released, err)
	}
}
