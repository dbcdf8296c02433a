package keyed_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/keyed/keyedtest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

const prefix = "mailgate:keyed"

func set(t *testing.T, s keyed.Store, key, next string, life int64) (expires int64) {
	t.Helper()
	must.Get(s.Update(t.Context(), key, func(_ []byte, now int64) ([]byte, int64) {
		expires = now + life
		return []byte(next), expires
	}))(t)
	return expires
}

func open(t *testing.T, url string, confirm int) redis.UniversalClient {
	t.Helper()
	client := must.Get(redisx.Open(redisx.Options{URL: url, Timeout: time.Second, Confirm: confirm}))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Every Store of the suite has a client of its own, as those of several processes have.
func TestRedis_Suite_KeepsTheContract(t *testing.T) {
	server := redistest.Alone(t)
	keyedtest.Run(t, func() keyed.Store {
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		t.Cleanup(func() { _ = client.Close() })
		return keyed.Redis(client, prefix)
	})
}

func TestRedis_ClusterSuite_KeepsTheContract(t *testing.T) {
	server := redistest.Alone(t, "cluster-enabled yes")
	ctx := context.Background()
	must.OK(t, server.Client().ClusterAddSlotsRange(ctx, 0, 16383).Err())
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	t.Cleanup(func() { _ = client.Close() })
	servertest.Await(t, "the cluster to be up", 10*time.Second, func() error { return client.Set(ctx, "up", 1, 0).Err() })
	keyedtest.Run(t, func() keyed.Store { return keyed.Redis(client, prefix) })
}

// A value expires by the clock of Redis, which counts the changes since it started.
func TestRedis_NothingChanged_WritesNothing(t *testing.T) {
	server := redistest.Alone(t)
	s := keyed.Redis(open(t, server.URL(), 0), prefix)
	changes := func() string { return server.Info("persistence", "rdb_changes_since_last_save") }
	expires := set(t, s, "k", "a", 60_000)
	if at, err := server.Client().PExpireTime(t.Context(), prefix+":{k}").Result(); err != nil || at.Milliseconds() != expires {
		t.Errorf("Redis forgets the value at %d, want %d; %v", at.Milliseconds(), expires, err)
	}
	before := changes()
	for _, step := range []keyed.Step{
		func(old []byte, now int64) ([]byte, int64) { return bytes.Clone(old), now + 1 },
		func(old []byte, now int64) ([]byte, int64) { return old, now + 60_000 },
	} {
		must.Get(s.Update(t.Context(), "k", step))(t)
	}
	must.Get(s.Update(t.Context(), "none", func(old []byte, _ int64) ([]byte, int64) { return old, 0 }))(t)
	if after := changes(); after != before {
		t.Errorf("Redis counted %s changes before and %s after", before, after)
	}
}

// What an Update finds done may not have been confirmed: it waits for the replicas, too.
func TestRedis_Unconfirmed_RepeatedWaitsAgain(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	s, again := keyed.Redis(open(t, master.URL(), 1), prefix), keyed.Redis(open(t, master.URL(), 1), prefix)
	value := func(s keyed.Store, key, next string) error {
		_, err := s.Update(t.Context(), key, func(_ []byte, now int64) ([]byte, int64) {
			if next == "" {
				return nil, 0
			}
			return []byte(next), now + 60_000
		})
		return err
	}
	redistest.Healed(t, func() (bool, error) { return true, value(s, "removed", "a") })
	for key, next := range map[string]string{"written": "a", "removed": ""} {
		replica.Pause()
		for _, s := range []keyed.Store{s, again} {
			if err := value(s, key, next); !errors.Is(err, redisx.ErrUnconfirmed) {
				t.Errorf("%s without a replica: %v", key, err)
			}
		}
		replica.Resume()
		redistest.Healed(t, func() (bool, error) { return true, value(again, key, next) })
		if left := master.Client().PTTL(t.Context(), prefix+":{"+key+"}").Val(); (left > 0) != (next != "") || left > time.Minute {
			t.Errorf("%s is there for %v", key, left)
		}
	}
}

// A key that another program uses, and then a server that is gone: the error names no key.
func TestRedis_AnotherTypeOrServerGone_Unavailable(t *testing.T) {
	server := redistest.Alone(t)
	must.OK(t, server.Client().SAdd(t.Context(), prefix+":{alice}", "x").Err())
	for _, says := range []string{"another program", ""} {
		_, err := keyed.Redis(server.Client(), prefix).Update(t.Context(), "alice", func([]byte, int64) ([]byte, int64) { return []byte("a"), 1 << 60 })
		if !errors.Is(err, throttle.ErrUnavailable) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "alice") {
			t.Errorf("the error is %v", err)
		}
		server.Kill()
	}
}

// A value that changes between read and write is not overwritten.
func TestRedis_ChangedMeanwhile_StepTakenAgain(t *testing.T) {
	server := redistest.Alone(t)
	s := keyed.Redis(server.Client(), prefix)
	var seen []string
	must.Get(s.Update(t.Context(), "k", func(old []byte, now int64) ([]byte, int64) {
		if seen = append(seen, string(old)); len(seen) == 1 {
			set(t, s, "k", "between", 60_000)
		}
		return append(bytes.Clone(old), '+'), now + 60_000
	}))(t)
	got := server.Client().Get(t.Context(), prefix+":{k}").Val()
	if len(seen) != 2 || seen[1] != "between" || got != "between+" {
		t.Errorf("the step saw %q, the value is %q", seen, got)
	}
}

// A key that never stops changing ends in an error.
func TestRedis_ChangesForever_Unavailable(t *testing.T) {
	server := redistest.Alone(t)
	s := keyed.Redis(server.Client(), prefix)
	steps := 0
	_, err := s.Update(t.Context(), "k", func(_ []byte, now int64) ([]byte, int64) {
		steps++
		set(t, s, "k", strings.Repeat("x", steps), 60_000)
		return []byte("mine"), now + 60_000
	})
	if !errors.Is(err, throttle.ErrUnavailable) || steps < 2 || steps > 100 {
		t.Errorf("after %d steps: %v", steps, err)
	}
}

// A value of a new key is written by one command, a change takes two, and a step that makes nothing one.
func TestRedis_ClockKnown_NewValueWrittenAtOnce(t *testing.T) {
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	s := keyed.Redis(open(t, proxy.URL(), 0), prefix)
	set(t, s, "first", "a", 60_000)
	for _, tt := range []struct {
		next string
		life int64
		want int
	}{{"a", 60_000, 1}, {"b", 60_000, 2}, {"b", 60_000, 1}, {"", 0, 2}, {"", 0, 1}, {"c", 60_000, 1}} {
		before := proxy.Sent("evalsha")
		set(t, s, "k", tt.next, tt.life)
		if n := proxy.Sent("evalsha") - before; n != tt.want {
			t.Errorf("setting %q took %d commands, want %d", tt.next, n, tt.want)
		}
	}
}

// A step is taken by the server's clock, also where that was set since it was last heard.
func TestRedis_ClockSet_StepTakenByIt(t *testing.T) {
	server := redistest.Alone(t)
	clock := server.WithClock()
	s := keyed.Redis(server.Client(), prefix)
	set(t, s, "first", "a", 60_000)
	for i, ahead := range []time.Duration{time.Hour, 0, -time.Hour} {
		clock(ahead)
		from := time.Now().Add(ahead)
		moment := set(t, s, string(rune('a'+i)), "x", 60_000) - 60_000
		if to := time.Now().Add(ahead); moment < from.UnixMilli() || moment > to.UnixMilli() {
			t.Errorf("%s ahead, the step was taken %d ms from the clock", ahead, moment-from.UnixMilli())
		}
	}
}

// What a server that hung is asked to write, it does not write once the caller has gone.
func TestRedis_CallerGone_NothingWritten(t *testing.T) {
	server := redistest.Alone(t)
	s := keyed.Redis(server.Client(), prefix)
	set(t, s, "first", "a", 60_000)
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Update(ctx, "k", func(_ []byte, now int64) ([]byte, int64) { return []byte("late"), now + 60_000 }); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("at a server that hangs: %v", err)
	}
	// The clock of the answer before may have been off by as long as that answer took.
	over := time.Now().Add(time.Second)
	servertest.Eventually(t, "the call's time to be over", func() bool { return time.Now().After(over) })
	server.Resume()
	if got := server.Client().Get(t.Context(), prefix+":{k}").Val(); got != "" {
		t.Errorf("the value is %q", got)
	}
}
