package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
	"github.com/redis/go-redis/v9"
)

const (
	mailbox = "alice@example.com"
	patient = 20 * time.Second // for tests that are not about time, on a busy machine
)

var ctx = context.Background()

func open(t testing.TB, o redisx.Options) redis.UniversalClient {
	t.Helper()
	client := must.Get(redisx.Open(o))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// alone opens a client of a server of its own.
func alone(t testing.TB) (redis.UniversalClient, *redistest.Server) {
	t.Helper()
	server := redistest.Alone(t)
	return open(t, redisx.Options{URL: server.URL(), Timeout: patient}), server
}

func limiter(t testing.TB, client redis.UniversalClient, a throttle.Algorithm) *throttle.Limiter {
	t.Helper()
	return must.Get(cluster.New(client, "test", a))(t)
}

func take(t testing.TB, l *throttle.Limiter, key string) throttle.Verdict {
	t.Helper()
	return must.Get(l.Take(ctx, key))(t)
}

// timed sets the clocks of the servers to the suite's before each step.
type timed struct {
	throttle.Home
	now func() int64
	set []func(now int64)
}

func (h timed) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	for _, set := range h.set {
		set(h.now())
	}
	return h.Home.Do(ctx, key, op)
}

// opener opens limiters on servers that have the suite's clock.
func opener(client redis.UniversalClient, set ...func(now int64)) throttletest.Open {
	return func(t testing.TB, name string, a throttle.Algorithm, now func() int64) *throttle.Limiter {
		t.Helper()
		return throttle.New(a, timed{must.Get(cluster.New(client, name, a))(t).Home, now, set})
	}
}

func TestLimiter_Standalone_KeepsTheContract(t *testing.T) {
	client, server := alone(t)
	throttletest.Run(t, opener(client, server.WithStillClock()), throttletest.Length(3000, 100_000))
}

func TestLimiter_Cluster_KeepsTheContract(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	var set []func(now int64)
	for _, master := range servers.Masters {
		// No master may take another's silence, by a clock that leaps, for its end.
		must.OK(t, master.Client().ConfigSet(ctx, "cluster-node-timeout", "1000000000000000").Err())
		must.OK(t, master.Client().ConfigRewrite(ctx).Err())
		set = append(set, master.WithStillClock())
	}
	servers.AwaitReady()
	client := open(t, redisx.Options{URL: servers.URL(), Timeout: patient})
	throttletest.Run(t, opener(client, set...), throttletest.Length(1000, 20_000))
}

// A limiter works on the plain client of a program.
func TestLimiter_PlainClient_ByTheServersClock(t *testing.T) {
	server := redistest.Alone(t)
	l := limiter(t, server.Client(), throttle.DefaultPolicy())
	before := time.Now().UnixMilli()
	v := take(t, l, mailbox)
	if !v.Allowed || v.Now < before || v.Now > time.Now().UnixMilli() || v.Wait != 60_000 {
		t.Errorf("%+v", v)
	}
	if v := take(t, l, mailbox); v.Allowed || v.Limit != "minute" {
		t.Errorf("a second send: %+v", v)
	}
	key := "test:tiers:{" + mailbox + "}"
	if expires := server.Client().PExpireTime(ctx, key).Val().Milliseconds(); expires != v.At+86_400_000+1000 {
		t.Errorf("the record expires %d ms after the send", expires-v.At)
	}
}

func TestNew_Unfit_Refused(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	replicas := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}, ReadOnly: true})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "localhost:1"}})
	for _, c := range []redis.UniversalClient{client, replicas, ring} {
		t.Cleanup(func() { _ = c.Close() })
	}
	for name, tt := range map[string]struct {
		client    redis.UniversalClient
		prefix    string
		algorithm throttle.Algorithm
	}{
		"no client":         {nil, "p", throttle.DefaultPolicy()},
		"a ring":            {ring, "p", throttle.DefaultPolicy()},
		"replicas":          {replicas, "p", throttle.DefaultPolicy()},
		"no prefix":         {client, "", throttle.DefaultPolicy()},
		"braces":            {client, "{p}", throttle.DefaultPolicy()},
		"no algorithm":      {client, "p", nil},
		"a zero policy":     {client, "p", throttle.Policy{}},
		"a zero counter":    {client, "p", throttle.LeakyBucket{}},
		"another algorithm": {client, "p", another{throttle.DefaultPolicy()}},
	} {
		if _, err := cluster.New(tt.client, tt.prefix, tt.algorithm); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

type another struct{ throttle.Policy }

// A refusal, a Peek and a Take on an empty quota write nothing. Redis counts the changes.
func TestTake_Refused_WritesNothing(t *testing.T) {
	client, server := alone(t)
	algorithms := throttletest.Counters(t, "minute=1/60s")
	algorithms["tiers"] = throttletest.Policy(t, "minute=1/60s")
	for name, a := range algorithms {
		l := limiter(t, client, a)
		for take(t, l, mailbox).Allowed {
		}
		before := server.Info("persistence", "rdb_changes_since_last_save")
		if v := take(t, l, mailbox); v.Allowed {
			t.Errorf("%s: admitted", name)
		}
		if _, err := l.Peek(ctx, mailbox); err != nil {
			t.Error(err)
		}
		if released, err := l.Release(ctx, "another", throttle.Admission{ID: throttle.NewID()}); released || err != nil {
			t.Error(released, err)
		}
		if after := server.Info("persistence", "rdb_changes_since_last_save"); after != before {
			t.Errorf("%s: %s changes before, %s after", name, before, after)
		}
	}
}

// A limiter counts no records of another prefix or of another algorithm.
func TestTake_OthersRecords_NotCounted(t *testing.T) {
	client, _ := alone(t)
	l := limiter(t, client, throttle.DefaultPolicy())
	other := must.Get(cluster.New(client, "test2", throttle.DefaultPolicy()))(t)
	for _, limiter := range []*throttle.Limiter{l, other, limiter(t, client, throttletest.Counters(t, "minute=1/60s")["fixed window"])} {
		if v := take(t, limiter, mailbox); v.Sent != 1 {
			t.Errorf("%+v", v)
		}
	}
	if h, err := l.History(ctx, mailbox); len(h) != 1 || err != nil {
		t.Errorf("%d sends, %v", len(h), err)
	}
}

// A key that another program uses is unavailable, and the error says what to do without the key.
func TestTake_AnotherType_SaysSo(t *testing.T) {
	client, server := alone(t)
	must.OK(t, server.Client().LPush(ctx, "test:tiers:{"+mailbox+"}", "x").Err())
	_, err := limiter(t, client, throttle.DefaultPolicy()).Take(ctx, mailbox)
	if !errors.Is(err, throttle.ErrUnavailable) || !strings.Contains(err.Error(), "another program") || strings.Contains(err.Error(), "alice") {
		t.Error(err)
	}
}

// Where another server's clock was taken for this one's, a Take is not too late.
func TestTake_OtherServersClock_TakenOnceMore(t *testing.T) {
	client, server := alone(t)
	set := server.WithClock()
	l := limiter(t, client, throttle.DefaultPolicy())
	take(t, l, "another")
	set(time.Hour)
	if v := take(t, l, mailbox); !v.Allowed || v.Sent != 1 {
		t.Errorf("%+v", v)
	}
}

// The answer that tells the server's clock may come so late that the next try is too late by it. Then there is one more.
func TestTake_ClockToldLate_SentAgain(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Alone(t).Addr, ReadTimeout: 2 * time.Second})
	t.Cleanup(func() { _ = client.Close() })
	take(t, limiter(t, client, throttle.DefaultPolicy()), "another") // so that there is a connection
	client.AddHook(&slowFirst{})
	if v := take(t, limiter(t, client, throttle.DefaultPolicy()), mailbox); !v.Allowed || v.Sent != 1 {
		t.Errorf("%+v", v)
	}
}

// slowFirst gives the first answer 1.2 s late.
type slowFirst struct {
	tooLate
	once sync.Once
}

func (h *slowFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.once.Do(func() { <-time.After(1200 * time.Millisecond) })
		return err
	}
}

// A script that came too late has charged nothing, and its error says so.
func TestTake_TooLate_Unchanged(t *testing.T) {
	client, _ := alone(t)
	l := limiter(t, client, throttle.DefaultPolicy())
	client.AddHook(tooLate{})
	if _, err := l.Take(ctx, mailbox); !errors.Is(err, throttle.ErrUnchanged) || !errors.Is(err, throttle.ErrUnavailable) {
		t.Error(err)
	}
}

// tooLate has Redis say so.
type tooLate struct{ redis.Hook }

func (tooLate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (tooLate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (tooLate) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(interface{ SetVal(any) }).SetVal("-\x01\x02\x03\x04\x05\x06")
		return nil
	}
}
